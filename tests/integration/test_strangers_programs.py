"""Long programs over columns of many types, with nulls, NaN and values within values, in little memory, against DuckDB.

Eight and more operators keep rows in each of them, far more than a slot of this size has pages for at a time.
"""

import datetime
import decimal
import random

import pyarrow as pa
import pytest

from engine import JoinHint, col, count, count_distinct, max_, min_, sum_
from tests.integration.row_oracle import assert_same_rows, duck, plain_row, rows_of

ROWS = 3000
FIRST = datetime.datetime(1969, 12, 31, 23, 0, tzinfo=datetime.UTC)
CONFIGURATIONS = {
    "tiny": {"taskmanager.memory.managed.size": "512kb"},
    "tiny batch": {"taskmanager.memory.managed.size": "512kb", "execution.mode": "BATCH"},
    "forced": {"taskmanager.memory.managed.size": "8mb", "debug.force-spill": True},
}
FACTS = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.int64()),
        ("g", pa.int32()),
        ("price", pa.decimal128(18, 4)),
        ("ratio", pa.float64()),
        ("text", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("parts", pa.list_(pa.int32())),
        ("pair", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ]
)


def fact(chance, index):
    return {
        "id": index,
        "v": index * 7919 % ROWS,
        "g": None if chance.random() < 0.02 else 7 if chance.random() < 0.5 else chance.randrange(ROWS // 5),
        "price": None if chance.random() < 0.05 else decimal.Decimal(chance.randrange(-(10**6), 10**6)).scaleb(-4),
        "ratio": chance.choice([None, float("nan"), -0.0, 0.0, float("inf"), 1.5, float(chance.randrange(99))]),
        "text": chance.choice([None, "", "ä€𝄞", f"{chance.randrange(ROWS // 3)} {'x' * (index % 40)}"]),
        "at": FIRST + datetime.timedelta(microseconds=chance.randrange(10**11)),
        "parts": chance.choice([None, [], [index % 5, None, index % 7]]),
        "pair": None if chance.random() < 0.1 else {"a": index % 100, "b": f"b{index % 1000}"},
    }


@pytest.fixture(scope="module")
def tables():
    chance = random.Random(17)
    others = [
        {"key": None if n % 97 == 0 else chance.randrange(ROWS), "w": n % 1000, "o": f"other {n}"}
        for n in range(ROWS // 2)
    ]
    labels = [{"g": n, "label": f"label {n * 31 % 1009}"} for n in range(ROWS // 5) if n % 10 != 3]
    return {
        "facts": pa.Table.from_pylist([fact(chance, index) for index in range(ROWS)], FACTS),
        "others": pa.Table.from_pylist(others),
        "labels": pa.table(
            {"g": pa.array([row["g"] for row in labels], pa.int32()), "label": [r["label"] for r in labels]}
        ),
    }


def orders(facts, others, labels):
    """Two aggregates, joins of four types, a count of distinct values, a sort."""
    sums = facts.group_by("g", "ratio").agg(n=count(), total=sum_(col("price")), first=min_(col("at")))
    joined = facts.select("g", "ratio", "id", "pair").join(
        sums, on=["g", "ratio"], hint=JoinHint.REPARTITION_HASH_FIRST
    )
    more = joined.join(others, left_on="id", right_on="key", how="left", hint=JoinHint.REPARTITION_HASH_SECOND)
    left = more.join(labels.filter(col("g") % 4 == 1), on="g", how="anti", hint=JoinHint.REPARTITION_HASH_FIRST)
    grouped = left.group_by("g").agg(
        rows=count(),
        w=sum_(col("w")),
        o=max_(col("o")),
        kinds=count_distinct(col("total")),
        first=min_(col("first")),
    )
    named = grouped.join(labels, on="g", how="left", hint=JoinHint.REPARTITION_SORT_MERGE)
    return named.sort(["w", "g"], descending=[True, False], nulls_last=True)


ORDERS = """
    WITH sums AS (SELECT g, ratio + 0.0 AS ratio, sum(price) total, min("at") "first" FROM facts GROUP BY ALL),
    joined AS (SELECT f.g, f.id, total, "first" FROM facts f JOIN sums s ON f.g = s.g AND f.ratio = s.ratio),
    more AS (SELECT j.*, w, o FROM joined j LEFT JOIN others ON id = "key"),
    kept AS (SELECT * FROM more m WHERE NOT EXISTS (SELECT 1 FROM labels l WHERE l.g = m.g AND l.g % 4 = 1)),
    grouped AS (SELECT g, count(*) "rows", sum(w)::BIGINT w, max(o) o, count(DISTINCT total) kinds, min("first") "first"
        FROM kept GROUP BY g)
    SELECT grouped.*, label FROM grouped LEFT JOIN labels USING (g) ORDER BY w DESC NULLS LAST, g NULLS LAST
"""


def values_within_values(facts, others, labels):
    """A self join, a sort-merge join and a sort that carry lists and structs."""
    behind = facts.filter(col("id") % 3 != 1).select("v", col("parts").alias("behind"), col("pair").alias("mate"))
    pairs = facts.drop("v", "text").join(behind, left_on="id", right_on="v", hint=JoinHint.REPARTITION_HASH_FIRST)
    found = pairs.join(others, left_on="id", right_on="key", how="full", hint=JoinHint.REPARTITION_SORT_MERGE)
    return (
        found.join(labels, on="g", how="semi")
        .select("at", "id", "w", "parts", "pair", "behind", "mate")
        .sort(["at", "id", "w"], descending=[True, False, False], nulls_last=[False, False, True])
    )


VALUES_WITHIN_VALUES = """
    WITH pairs AS (SELECT f.*, b.parts AS behind, b.pair AS mate
        FROM facts f JOIN (SELECT * FROM facts WHERE id % 3 <> 1) b ON f.id = b.v)
    SELECT "at", id, w, parts, pair, behind, mate FROM pairs p FULL JOIN others ON p.id = "key"
    WHERE EXISTS (SELECT 1 FROM labels l WHERE l.g = p.g) ORDER BY "at" DESC NULLS FIRST, id NULLS FIRST, w NULLS LAST
"""


def distinct_and_top(facts, others, labels):
    """A union, distinct rows, groups by a text and a number with NaN, and the largest of them."""
    columns = facts.select("id", "text", "price", "ratio", "at")
    both = columns.filter(col("id") % 2 == 0).union(columns.filter(col("id") % 3 == 0))
    groups = both.distinct().group_by("text", "ratio")
    counted = groups.agg(n=count(), prices=count_distinct(col("price")), last=max_(col("at")), id=min_(col("id")))
    return counted.top(700, ["n", "id"], descending=[True, False])


DISTINCT_AND_TOP = """
    SELECT "text", ratio + 0.0 AS ratio, count(*) n, count(DISTINCT price) prices, max("at") "last", min(id) id
    FROM (SELECT * FROM facts WHERE id % 2 = 0 UNION SELECT * FROM facts WHERE id % 3 = 0)
    GROUP BY ALL ORDER BY n DESC, id LIMIT 700
"""
PROGRAMS = {
    "orders": (orders, ORDERS),
    "values within values": (values_within_values, VALUES_WITHIN_VALUES),
    "distinct and top": (distinct_and_top, DISTINCT_AND_TOP),
}


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_long_program_over_many_types_is_duckdbs(open_environment, tables, program, configuration):
    env = open_environment(**CONFIGURATIONS[configuration])
    build, sql = PROGRAMS[program]
    found = rows_of(build(*(env.from_arrow(table) for table in tables.values())).to_arrow())
    expected = duck(sql, **tables)
    assert len(expected) >= 200
    assert_same_rows(found, expected)
    assert list(map(plain_row, found)) == list(map(plain_row, expected))
