"""SQL texts: what is pushed means the same in the database, and nothing of a user gets out of its quotes."""

import datetime
import decimal
import math

import pyarrow as pa
import pytest

from engine import col, lit
from engine.databases.database_filters import pushed
from engine.databases.database_queries import from_text, quoted, range_text, select_text, text_literal
from engine.graph.source_spec import SourceSplit

SCHEMA = pa.schema(
    {
        "i": pa.int64(),
        "s": pa.string(),
        "f": pa.float64(),
        "r": pa.float32(),
        "d": pa.decimal128(10, 2),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "yes": pa.bool_(),
        "b": pa.binary(),
    }
)


def test_names_and_texts_stay_in_their_quotes():
    assert quoted('a"b') == '"a""b"'
    assert text_literal("it's", "sqlite") == "'it''s'"
    assert text_literal("it's \\", "postgresql") == "E'it''s \\\\'"
    assert text_literal("\\", "sqlite") == "'\\'"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("orders", '"orders"'),
        ("sales.Orders", '"sales"."Orders"'),
        ('"my schema"."a.b"', '"my schema"."a.b"'),
        ('sales."say ""x"""', '"sales"."say ""x"""'),
        ('"a" "b"', '(\n"a" "b"\n)'),
        (" SELECT 1 AS n ; ", "(\nSELECT 1 AS n\n)"),
        ("SELECT 1 -- one", "(\nSELECT 1 -- one\n)"),
    ],
)
def test_a_table_is_quoted_and_a_query_stands_in_brackets(query, text):
    assert from_text(query) == text


@pytest.mark.parametrize(
    ("predicate", "text", "is_decided"),
    [
        (col("i") >= 5, 'q."i" >= 5', True),
        (lit(5) >= col("i"), 'q."i" <= 5', True),
        (col("i") != -5, 'q."i" <> -5', True),
        (col("f") < 1.5, "q.\"f\" < CAST('1.5' AS double precision)", True),
        (col("s") == "it's", "q.\"s\" = 'it''s'", False),
        (col("d").is_null(), 'q."d" IS NULL', True),
        (col("s").is_not_null(), 'q."s" IS NOT NULL', True),
        (col("d") == 1, 'q."d" = 1', True),
        (col("d") < decimal.Decimal("-1.50"), 'q."d" < -1.50', True),
        (col("f") > 1, "q.\"f\" > CAST('1.0' AS double precision)", True),
        (col("day") >= datetime.date(2020, 1, 31), "q.\"day\" >= DATE '2020-01-31'", True),
        (
            col("at") < datetime.datetime(2020, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
            "q.\"at\" < TIMESTAMPTZ '2020-01-01 00:00:00+00:00'",
            True,
        ),
        (col("i").between(1, 3), 'q."i" >= 1 AND q."i" <= 3', True),
        (~col("i").between(1, 3), 'NOT (q."i" >= 1 AND q."i" <= 3)', True),
        (~(col("i") == 1), 'NOT (q."i" = 1)', True),
        (col("i").is_in([1, 2]), 'q."i" = 1 OR q."i" = 2', True),
        (col("s").is_in(["a", "b"]), "q.\"s\" = 'a' OR q.\"s\" = 'b'", False),
        (col("yes"), 'q."yes"', True),
        (~col("yes"), 'NOT q."yes"', True),
        ((col("i") == 1) | (col("d") == 2), '(q."i" = 1) OR (q."d" = 2)', True),
        ((col("s") == "x") | (col("i") == 2), '(q."s" = \'x\') OR (q."i" = 2)', False),
    ],
)
def test_filters_that_mean_the_same_are_pushed(predicate, text, is_decided):
    texts, rest = pushed(predicate.expression, SCHEMA, "postgresql")
    assert texts == [text]
    assert bool(rest) is not is_decided


@pytest.mark.parametrize(
    "predicate",
    [
        col("s") < "x",
        col("s") != "x",
        col("s") == "a\0b",
        col("r") == 0.1,
        col("f") > lit(math.nan),
        col("i") > 1.5,
        col("f") > 2**53 + 1,
        col("i") == decimal.Decimal("1.5"),
        col("i") + 1 == 2,
        ~(col("s") == "x"),
        ~((col("s") == "x") | (col("i") == 2)),
        (col("i") == 1) | (col("s") < "x"),
        col("i").is_in([1, None]),
        col("day") == datetime.datetime(2020, 1, 1),
        col("s").str.starts_with("x"),
    ],
)
def test_others_stay_with_the_engine(predicate):
    assert pushed(predicate.expression, SCHEMA, "postgresql") == ([], [predicate.expression])


def test_parts_of_a_filter_are_told_apart():
    predicate = ((col("i") > 1) & (col("d") > 2) & (col("s") == "x")).expression
    texts, rest = pushed(predicate, SCHEMA, "sqlite")
    assert texts == ['q."i" > 1', 'q."d" > 2', "CAST(q.\"s\" AS TEXT) COLLATE BINARY = 'x'"]
    assert len(rest) == 1


def test_statements_ask_for_the_wanted_columns_alone():
    assert select_text('"t"', SCHEMA, ["i"], ['q."i" > 1', "a OR b"], "postgresql") == (
        'SELECT q."i" AS "i" FROM "t" AS q WHERE (q."i" > 1) AND (a OR b)'
    )
    assert select_text('"t"', SCHEMA, [], [], "postgresql") == 'SELECT 1 AS n FROM "t" AS q'
    assert select_text('"t"', SCHEMA, ["b", "s"], [], "sqlite") == (
        'SELECT x\'\' AS "b", \'\' AS "s" UNION ALL SELECT q."b" AS "b", CAST(q."s" AS TEXT) AS "s" FROM "t" AS q'
    )


@pytest.mark.parametrize(
    ("split", "text"),
    [
        (("all", 0, 0), ""),
        (("first", 0, 3), 'q."i" < 5 OR q."i" IS NULL'),
        (("middle", 1, 3), 'q."i" >= 5 AND q."i" < 9'),
        (("last", 2, 3), 'q."i" >= 9'),
        (("part", 1, 3), 'abs(coalesce(hashtextextended(CAST(q."i" AS text), 0), 0) % 3) = 1'),
    ],
)
def test_ranges_are_conditions(split, text):
    assert range_text("i", ["5", "9"], SourceSplit(*split, 1)) == text
