"""Joins by ranges as whole jobs, beside DuckDB: types of joins and values, keys, SQL, little memory."""

import datetime
import decimal
import random

import pyarrow as pa
import pytest

from engine import Environment, col, count, sum_
from tests.integration.row_oracle import assert_same_rows, duck, rows_of

HOW = ["inner", "left", "right", "full", "semi", "anti"]
ENVIRONMENTS = {
    "one": {"parallelism.default": 1},
    "three": {"parallelism.default": 3},
    "two, batch, spilling": {"parallelism.default": 2, "execution.mode": "BATCH", "debug.force-spill": True},
    "two, small": {"parallelism.default": 2, "taskmanager.memory.managed.size": "1mb"},
}
BEGIN = datetime.datetime(2021, 3, 28, tzinfo=datetime.UTC)
KINDS = {
    "int64": (pa.int64(), lambda number: number),
    "float64": (pa.float64(), lambda number: float("nan") if number == 7 else number / 3),
    "date": (pa.date32(), lambda number: datetime.date(2020, 1, 1) + datetime.timedelta(days=number)),
    "zone": (pa.timestamp("us", "Europe/Zurich"), lambda number: BEGIN + datetime.timedelta(minutes=number)),
    "decimal": (pa.decimal128(20, 3), lambda number: decimal.Decimal(number) / 8),
    "text": (pa.string(), lambda number: f"a text that is long {number:05}"),
}


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def env(request, open_environment):
    return open_environment(**ENVIRONMENTS[request.param])


def table(seed, count, kind, names, spread=120):
    """Rows of (group with a heavy "a", values with nulls, number); a second value is behind the first."""
    chance = random.Random(seed)
    data_type, value = KINDS[kind]
    groups = [
        None if chance.random() < 0.1 else "a" if chance.random() < 0.5 else chance.choice("bcd") for _ in range(count)
    ]
    firsts = [chance.randrange(spread) for _ in range(count)]
    columns = [firsts, [first + chance.randrange(8) for first in firsts]][: len(names) - 2]
    arrays = [
        pa.array([None if chance.random() < 0.1 else value(each) for each in column], data_type) for column in columns
    ]
    return pa.table([pa.array(groups, pa.string()), *arrays, pa.array(range(count))], names=list(names))


POINTS = table(1, 150, "int64", ("g", "t", "p"))
SPANS = table(2, 120, "int64", ("h", "low", "high", "s"))
WITHIN = (col("t") >= col("low")) & (col("t") < col("high"))


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("rest", ["", " AND p % 3 <> s % 3"])
def test_intervals(env, how, swapped, rest):
    left, right = (SPANS, POINTS) if swapped else (POINTS, SPANS)
    condition = WITHIN & (col("p") % 3 != col("s") % 3) if rest else WITHIN
    joined = env.from_arrow(left).join(env.from_arrow(right), how=how, condition=condition)
    assert "RANGE_MERGE" in joined.explain()
    columns = "l.*" if how in ("semi", "anti") else "l.*, r.*"
    sql = f"SELECT {columns} FROM l {how.upper()} JOIN r ON t >= low AND t < high{rest}"
    assert_same_rows(rows_of(joined.to_arrow()), duck(sql, l=left, r=right))


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("t BETWEEN low AND high", col("t").between(col("low"), col("high"))),
        ("t > low", col("t") > col("low")),
        ("high >= t", col("high") >= col("t")),
        ("t > low AND t <= high", (col("low") < col("t")) & (col("t") <= col("high"))),
    ],
)
def test_values_of_every_kind(env, kind, text, condition):
    points, spans = table(3, 90, kind, ("g", "t", "p")), table(4, 80, kind, ("h", "low", "high", "s"))
    joined = env.from_arrow(points).join(env.from_arrow(spans), condition=condition).select("p", "s")
    assert "RANGE_MERGE" in joined.explain()
    assert_same_rows(rows_of(joined.to_arrow()), duck(f"SELECT p, s FROM l JOIN r ON {text}", l=points, r=spans))


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize("how", HOW)
def test_equal_keys_and_a_range(env, how):
    left, right = table(5, 400, "int64", ("g", "t", "p")), table(6, 300, "int64", ("g", "low", "high", "s"))
    joined = env.from_arrow(left).join(
        env.from_arrow(right), on="g", how=how, condition=WITHIN, hint="REPARTITION_SORT_MERGE"
    )
    assert "RANGE_MERGE" in joined.explain()
    columns = "l.*" if how in ("semi", "anti") else "coalesce(l.g, r.g), t, p, low, high, s"
    sql = f"SELECT {columns} FROM l {how.upper()} JOIN r ON l.g = r.g AND t >= low AND t < high"
    assert_same_rows(rows_of(joined.to_arrow()), duck(sql, l=left, r=right))


def test_expressions_and_other_types_are_compared_as_columns(env):
    points, spans = POINTS, SPANS.set_column(1, "low", SPANS["low"].cast(pa.int32()))
    condition = (col("t") - 2 > col("low")) & (col("t") < col("low") * 1.1 + 7.5)
    joined = env.from_arrow(points).join(env.from_arrow(spans), how="left", condition=condition)
    assert joined.columns == ["g", "t", "p", "h", "low", "high", "s"]
    assert "RANGE_MERGE" in joined.explain()
    sql = "SELECT * FROM l LEFT JOIN r ON t - 2 > low AND t < low * 1.1::DOUBLE + 7.5::DOUBLE"
    assert_same_rows(rows_of(joined.to_arrow()), duck(sql, l=points, r=spans))


def test_a_range_reaches_the_join_from_a_filter(env):
    crossed = env.from_arrow(POINTS).join(env.from_arrow(SPANS), how="cross")
    found = crossed.filter(WITHIN & (col("p") > 20)).group_by("g").agg(rows=count(), total=sum_(col("s")))
    assert "RANGE_MERGE" in found.explain()
    sql = "SELECT g, count(*), sum(s)::BIGINT FROM l, r WHERE t >= low AND t < high AND p > 20 GROUP BY g"
    assert_same_rows(rows_of(found.to_arrow()), duck(sql, l=POINTS, r=SPANS))


def test_sql(env):
    env.register("points", env.from_arrow(POINTS))
    env.register("spans", env.from_arrow(SPANS))
    for sql in (
        "SELECT p, s FROM points, spans WHERE t >= low AND t < high",
        "SELECT p, s FROM points LEFT JOIN spans ON t BETWEEN low + 1 AND high",
        "SELECT p FROM points WHERE EXISTS (SELECT 1 FROM spans WHERE t > low AND t < high)",
    ):
        found = env.sql(sql)
        assert "RANGE_MERGE" in found.explain(), sql
        assert_same_rows(rows_of(found.to_arrow()), duck(sql, points=POINTS, spans=SPANS))


def test_a_selective_range_over_sides_larger_than_the_memory(open_environment):
    env = open_environment(**ENVIRONMENTS["two, small"])
    rows = 40_000
    points = pa.table({"t": [(7 * n) % rows for n in range(rows)], "p": [f"{n} " + "x" * 40 for n in range(rows)]})
    spans = pa.table({"low": [(11 * n) % rows for n in range(rows)], "s": [f"{n} " + "y" * 40 for n in range(rows)]})
    condition = (col("t") >= col("low")) & (col("t") < col("low") + 2)
    joined = env.from_arrow(points).join(env.from_arrow(spans), condition=condition)
    found = joined.select((col("t") - col("low")).alias("apart")).group_by("apart").agg(n=count()).sort("apart")
    assert rows_of(found.to_arrow()) == [(0, rows), (1, rows - 1)]


def test_an_environment_without_a_cluster_explains_the_range():
    env = Environment(config={"parallelism.default": 2})
    text = (
        env.from_arrow(POINTS)
        .join(env.from_arrow(SPANS), how="left", condition=WITHIN & (col("p") != col("s")))
        .explain()
    )
    assert "range t >= low and t < high" in text
    assert "condition" in text
