"""Operators that users say are Spark's own where Spark has them, and the engine's rows where it has not."""

from decimal import Decimal

import pyarrow as pa
import pytest

from engine import (
    Environment,
    any_,
    avg,
    col,
    count,
    count_distinct,
    cume_dist,
    dense_rank,
    first_value,
    lag,
    last_value,
    lead,
    lit,
    max_,
    median,
    min_,
    nth_value,
    ntile,
    percent_rank,
    rank,
    row_number,
    stddev,
    sum_,
)
from engine.dataframes.fragments import fragment_settings
from engine.dataframes.frame import Fragments
from engine.dataframes.needed_settings import with_needed_settings
from engine.dataframes.translator import PlanTranslator
from engine.lowering.logical_node import build_plan
from engine.targets.spark import pruned, run_fragment
from tests.dataframes.conftest import SETTINGS
from tests.dataframes.same_rows import assert_same

pytestmark = pytest.mark.spark

NAN = float("nan")
ROWS = pa.table(
    {
        "id": pa.array(range(90), pa.int64()),
        "g": pa.array([None if i % 13 == 0 else i % 4 for i in range(90)], pa.int32()),
        "h": pa.array([f"h{i % 3}" for i in range(90)]),
        "x": pa.array([[0.0, -0.0, NAN, None, 1.5, -2.25][i % 6] for i in range(90)], pa.float64()),
        "n": pa.array([None if i % 7 == 0 else i % 5 for i in range(90)], pa.int16()),
        "d": pa.array([Decimal(i % 8) / 4 for i in range(90)], pa.decimal128(14, 2)),
        "u": pa.array([i % 6 for i in range(90)], pa.uint64()),
        "b": pa.array([i % 9 == 0 for i in range(90)]),
    }
)
OTHERS = pa.table({"g": pa.array([0, 1, 1, None], pa.int32()), "h": ["h0", "h1", "h1", "h2"]})
FRAME = {"partition_by": "g", "order_by": "id"}
#: programs that are Spark's alone
NATIVE = {
    "filters": lambda r, o: r.group_by("g").agg(
        n=count(filter=col("n") > 2), t=sum_("id", filter=col("b")), m=max_("x", filter=col("h") == "h1")
    ),
    "different values": lambda r, o: r.group_by("h").agg(
        a=count_distinct("n"), b=sum_("n", distinct=True), c=avg("d", distinct=True), d=count_distinct("x"), e=count()
    ),
    "different values that a filter leaves": lambda r, o: r.group_by("h").agg(
        a=count_distinct("n", filter=col("b")), b=any_("b"), c=min_("u")
    ),
    "expressions": lambda r, o: r.group_by(late=col("id") > 40).agg(
        less=sum_("id") - count(), both=sum_("n") + sum_("id"), n=count()
    ),
    "all rows": lambda r, o: r.agg(a=count_distinct("h"), b=sum_("id", filter=col("b")), c=count()),
    "no rows": lambda r, o: r.filter(col("id") < 0).agg(a=count_distinct("h"), b=sum_("id"), c=avg("n")),
    "rollup": lambda r, o: r.group_by("g", "h").rollup("set").agg(n=count(), t=sum_("id"), k=count_distinct("n")),
    "cube of computed keys": lambda r, o: r.group_by(k=col("id") > 40, g=col("g")).cube().agg(n=count("x")),
    "sets of no rows": lambda r, o: r.filter(col("id") < 0).group_by("g", "h").cube("set").agg(n=count()),
    "keys of sets alone": lambda r, o: r.group_by("g", "h").cube().agg(n=count()).select("h"),
    "some sets": lambda r, o: r.group_by("g", "h", "b").grouping_sets(["b", "g"], ["h"]).agg(m=max_("x")),
    "rankings": lambda r, o: r.select(
        "id",
        a=row_number().over("g", "id"),
        b=rank().over("h", "n", descending=True),
        c=dense_rank().over("h", ["n", "x"], nulls_last=True),
        d=percent_rank().over("x", "id"),
        e=cume_dist().over("g", "u"),
        f=ntile(4).over("g", "id"),
    ),
    "values of rows": lambda r, o: r.select(
        "id",
        a=lag("x").over(**FRAME),
        b=lead(col("id") + 1, 3).over(**FRAME),
        c=first_value("u").over(**FRAME),
        d=last_value("h").over(**FRAME, rows=(0, None)),
        e=nth_value("d", 2).over(**FRAME),
    ),
    "frames": lambda r, o: r.select(
        "id",
        a=sum_("id").over(**FRAME, rows=(-2, 1)),
        b=count("n").over(**FRAME),
        c=avg("d").over("h"),
        d=max_("x").over("g", "u"),
        e=count().over("h", "n", rows=(None, -1)),
        f=sum_("d").over("x", "id"),
        g=min_("u").over("h", "u", range=(0, None)),
    ),
    "of windows": lambda r, o: r.with_columns(less=col("id") - sum_("id").over("g"), n=row_number().over("g", "id")),
    "the first of each": lambda r, o: r.filter(row_number().over("g", "id") <= 2),
    "one of each": lambda r, o: r.distinct("h").select("h"),
    "copies that both have": lambda r, o: r.select("g", "h").intersect(o, all=True),
    "copies that one has": lambda r, o: o.except_(r.select("g", "h").limit(2), all=True),
    "not in": lambda r, o: r.filter(~col("g").is_in(o.select("g").drop_nulls())),
    "not in with nulls": lambda r, o: r.filter(~col("g").is_in(o.select("g"))),
    "not in no rows": lambda r, o: r.filter(~col("g").is_in(o.select("g").filter(col("g") > 9))),
}
#: programs of which the engine computes a part
OF_BOTH = {
    "another aggregate": lambda r, o: r.group_by("g").agg(m=median("id"), n=count_distinct("h"), s=stddev("id")),
    "arguments": lambda r, o: r.group_by(k=col("h").str.upper()).agg(n=count(filter=col("h").str.upper() == "H1")),
    "a result": lambda r, o: r.group_by("g").agg(n=(sum_("id") + count()).cast(str).str.pad_left(9, "0")),
    "a set twice": lambda r, o: r.group_by("g", "h").grouping_sets(["g"], ["g"]).agg(n=count()),
    "a distance": lambda r, o: r.select("id", a=sum_("id").over("g", "id", range=(-5, 0))),
    "different values of a window": lambda r, o: r.select("id", a=count_distinct("n").over("g")),
    "a condition": lambda r, o: r.filter((row_number().over("g", "id") <= 3) & (col("h").str.upper() == "H1")),
    "a default": lambda r, o: r.select("id", a=lag("id", 1, lit(-1)).over("g", "id")),
    "behind a sort": lambda r, o: r.sort("id", descending=True).select("id", a=row_number().over("g")),
}


@pytest.mark.parametrize("name", [*NATIVE, *OF_BOTH])
def test_rows_are_those_of_the_engine(places, name):
    program = (NATIVE | OF_BOTH)[name]
    one, other = (program(env.from_arrow(ROWS), env.from_arrow(OTHERS)).to_arrow() for env in places)
    assert_same(one, other)


@pytest.mark.parametrize("name", NATIVE)
def test_spark_has_it_alone(spark, name):
    with Environment(config=SETTINGS) as env:
        found = NATIVE[name](env.from_arrow(ROWS), env.from_arrow(OTHERS))
        plan = pruned(build_plan([found._node], "", has_said=True))
        fragments = Fragments(run_fragment, fragment_settings({}), ())
        with with_needed_settings(spark):
            frame = PlanTranslator(plan, spark, fragments, 2).frame(plan.sinks[0])
            text = frame.exact()._jdf.queryExecution().optimizedPlan().toString()
    assert "MapInArrow" not in text
