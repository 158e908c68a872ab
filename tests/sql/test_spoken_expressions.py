"""Expressions written in SQL are those of env.sql, wherever a data set takes one; what is more is refused."""

import pyarrow as pa
import pytest

from engine import Environment, NotYetSupportedError, PlanError, SchemaError, col, expr, sum_, udf

TABLE = pa.table({"a": [3, 1, 2], "B c": ["x", "y", None]})


@pytest.fixture(scope="module")
def rows():
    with Environment(config={"parallelism.default": 1, "python.execution-mode": "thread"}) as environment:
        environment.register_function("twice", udf(int)(lambda value: value * 2))
        yield environment.from_arrow(TABLE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + 1", [4, 2, 3]),
        ("upper(\"B c\") || '!'", ["X!", "Y!", None]),
        ("CASE WHEN a > 1 THEN 'p' END", ["p", None, "p"]),
        ("sum(a) OVER (ORDER BY a)", [6, 1, 3]),
        ("A", [3, 1, 2]),
        ("a IN (1, 2)", [False, True, True]),
        ("list_transform([a], x -> x * 10)[1]", [30, 10, 20]),
        ("twice(a)", [6, 2, 4]),
    ],
)
def test_a_text_is_the_expression_of_sql(rows, text, expected):
    found = rows.with_columns(v=expr(text)).to_arrow().to_pylist()
    assert {row["a"]: row["v"] for row in found} == dict(zip([3, 1, 2], expected, strict=True))


def test_texts_stand_within_other_expressions_and_have_a_name(rows):
    assert rows.select(expr(" a + 1 "), (expr("a") * col("a")).alias("s")).columns == ["a + 1", "s"]
    assert rows.filter(expr("a > 1") & expr('"B c" IS NOT NULL')).select("a").to_arrow().to_pylist() == [{"a": 3}]
    assert rows.sort(expr("-a")).select("a").to_arrow().column("a").to_pylist() == [3, 2, 1]
    assert "a > 1" in rows.filter(expr("a > 1")).explain()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("nope + 1", PlanError, "no column nope"),
        ("sum(a)", PlanError, "more than an expression over columns"),
        ("(SELECT max(a) FROM rows)", PlanError, "more than an expression over columns"),
        ("a AS b", PlanError, "a name is given with .alias"),
        ("a) FROM rows; --", PlanError, "more than one statement"),
        ("*", NotYetSupportedError, "STAR"),
    ],
)
def test_what_is_no_expression_over_columns_is_refused(rows, text, error, message):
    with pytest.raises(error, match=message):
        rows.select(expr(text))


def test_a_text_where_no_data_set_reads_it_is_an_error(rows):
    with pytest.raises(SchemaError, match="stands in select, with_columns, filter and sort"):
        rows.group_by("a").agg(s=sum_(expr("a + 1")))
    with pytest.raises(SchemaError, match="write an expression of SQL"):
        expr("  ")
