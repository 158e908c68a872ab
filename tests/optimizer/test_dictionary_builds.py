"""When a join's table is expected to be smaller than its rows: they differ in one key alone, and keys lie together."""

import pytest

from engine.graph.plan import Join
from engine.graph.said_operators import JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.memory.page_budget import PageBudget
from engine.optimizer.dictionary_builds import table_bytes
from engine.optimizer.explain import explain
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from engine.statistics.costs import hash_join_cost
from engine.statistics.estimates import Estimates
from tests.optimizer.plan_building import Builder, schema

ROWS = 1_000_000.0
KEY = ColumnStatistics(distinct_count=ROWS, minimum=-10, maximum=3_999_989)
FEW = ColumnStatistics(distinct_count=5.0)


def build(rows=ROWS, key=KEY, **columns):
    return Estimates(rows, 40 * rows, "test", {"k": key, **columns})


def join(how=JoinType.INNER, keys=("k",), coalesce_keys=True):
    return Join(how, keys, keys, coalesce_keys)


def test_a_byte_for_each_number_between_the_keys():
    assert table_bytes(join(), builds_left=False, build=build(few=FEW)) == 4_000_000
    assert table_bytes(join(), builds_left=True, build=build(few=FEW, more=ColumnStatistics(25.0))) == 4_000_000
    assert table_bytes(join(), builds_left=False, build=build()) == 4_000_000


@pytest.mark.parametrize(
    "rows",
    [
        build(few=FEW, more=ColumnStatistics(26.0)),
        build(few=ColumnStatistics()),
        build(key=ColumnStatistics(distinct_count=ROWS)),
        build(key=ColumnStatistics(distinct_count=ROWS, minimum="a", maximum="z")),
        build(key=ColumnStatistics(distinct_count=ROWS, minimum=0, maximum=10**9)),
        build(key=ColumnStatistics(distinct_count=ROWS / 2, minimum=0, maximum=10**6)),
        build(key=ColumnStatistics(minimum=0, maximum=10**6)),
    ],
    ids=["combinations", "unknown column", "no bounds", "texts", "far apart", "not unique", "perhaps not unique"],
)
def test_rows_that_may_differ_or_lie_far_apart_are_rows(rows):
    assert table_bytes(join(), builds_left=False, build=rows) is None


@pytest.mark.parametrize("how", [JoinType.SEMI, JoinType.ANTI])
def test_keys_may_come_again_where_one_row_of_each_is_enough(how):
    often = build(key=ColumnStatistics(distinct_count=ROWS / 50, minimum=0, maximum=99_999))
    assert table_bytes(join(), builds_left=False, build=often) is None
    assert table_bytes(join(how), builds_left=False, build=often) == 100_000
    far_apart = build(key=ColumnStatistics(distinct_count=ROWS / 50, minimum=0, maximum=999_999))
    assert table_bytes(join(how), builds_left=False, build=far_apart) is None


@pytest.mark.parametrize("how", list(JoinType))
@pytest.mark.parametrize("builds_left", [False, True])
def test_a_side_that_must_be_told_apart_is_rows(how, builds_left):
    found = table_bytes(join(how), builds_left=builds_left, build=build(few=FEW))
    told = {
        True: (JoinType.INNER, JoinType.RIGHT),
        False: (JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI),
    }
    assert (found is not None) == (how in told[builds_left])
    assert table_bytes(join(how, ("k", "few")), builds_left=builds_left, build=build(few=FEW)) is None


def test_an_outer_join_that_returns_the_build_key_keeps_rows():
    assert table_bytes(join(JoinType.LEFT, coalesce_keys=False), builds_left=False, build=build(few=FEW)) is None
    assert table_bytes(join(coalesce_keys=False), builds_left=False, build=build(few=FEW)) == 4_000_000


def test_a_table_that_fits_spills_nothing():
    rows, probe = build(few=FEW), Estimates(10.0, 4e8, "test")
    assert hash_join_cost(rows, probe, 2, 2, 10_000_000).disk > 0
    table = table_bytes(join(), builds_left=False, build=rows)
    assert hash_join_cost(rows, probe, 2, 2, 10_000_000, table).disk == 0
    assert hash_join_cost(rows, probe, 2, 2, 1_000_000, table).disk > 0


def test_a_side_whose_table_fits_is_broadcast_and_explained():
    def plan(few):
        builder = Builder()
        facts = builder.source(schema(k="int64", a="double"), rows=40_000_000)
        dimension = builder.source(schema(k="int64", kind="string"), rows=ROWS, columns={"k": KEY, "kind": few})
        builder.sink(builder.join(facts, dimension, on="k"))
        return optimize(builder.plan(), OptimizerSettings(parallelism=2, page_budget=PageBudget(25_000_000)))

    reason = "(dictionary-encoded build side: rows differ in k alone, a table of 4 MB)"
    ways = [next(node.alternative for node in plan(few).nodes if node.alternative) for few in (FEW, ColumnStatistics())]
    assert ways == ["BROADCAST_HASH_SECOND", "REPARTITION_HASH_SECOND"]
    assert f"right, build: BROADCAST {reason}" in explain(plan(FEW))
    assert reason not in explain(plan(ColumnStatistics()))
