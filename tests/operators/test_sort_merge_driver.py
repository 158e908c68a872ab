"""The head of a sort-merge join over real exchanges: pages and batches, least memory, what it counts and gives back."""

import msgspec
import pyarrow as pa
import pytest

from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.expression import Call, ColumnRef
from engine.graph.operator_descriptor import LimitOperator, OperatorDescriptor, SortMergeJoinOperator
from engine.graph.said_operators import JoinType
from engine.memory.page_budget import OPERATOR_PAGES_MIN
from tests.operators.task_world import described
from tests.operators.test_drivers import END_S, finish, produce, world, written

__all__ = ["world"]

LEFT = pa.table({"k": [n % 50 for n in range(9000)], "v": list(range(9000)), "t": [f"t{n}" for n in range(9000)]})
RIGHT = pa.table({"k2": [*range(40), *range(60, 70), 3, 3], "w": [f"w{n}" for n in range(52)]})
JOINED = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("w", pa.string())])
PAIRS = [(v % 50, v, w) for v in range(9000) for k, w in zip(*RIGHT.to_pydict().values(), strict=True) if k == v % 50]


def sort_merge(
    how=JoinType.INNER, condition=None, output=((0, 0), (0, 1), (1, 1)), left=LEFT, right=RIGHT, joined=JOINED
):
    operator = SortMergeJoinOperator(how, ("k",), ("k2",), output, condition)
    schemas = (to_plan_schema(left.schema), to_plan_schema(right.schema))
    return OperatorDescriptor(0, "join", operator, schemas, to_plan_schema(joined), 1.0)


def merging(world, chain, left, right, pages=None, **configuration):
    gates = (left[2], msgspec.structs.replace(right[2], input_index=1))
    return world.task(chain, gates=gates, slot_pages=pages, **configuration)


@pytest.mark.parametrize("kind", ["HASH", "FORWARD"])
@pytest.mark.parametrize("result_type", ["PIPELINED", "BLOCKING"])
@pytest.mark.parametrize(("pages", "force_spill"), [(None, "false"), (OPERATOR_PAGES_MIN, "false"), (None, "true")])
def test_both_inputs_are_sorted_and_merged(world, kind, result_type, pages, force_spill):
    left = produce(world, LEFT, 1, kind, result_type)
    right = produce(world, RIGHT, 2, kind, result_type)
    chain = (sort_merge(), world.sink(JOINED))
    task = merging(world, chain, left, right, pages, debug__force_spill=force_spill)
    task.run()
    finish(left, right)
    rows = written(world, JOINED)
    assert sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == sorted(PAIRS)
    counters = task.counters()
    assert (counters.rows_in, counters.rows_out) == (9052, len(PAIRS))
    assert counters.bytes_in > 0
    assert counters.managed_bytes_peak <= (pages or world.resources.sizes.pages) * world.resources.sizes.page_bytes
    assert (counters.spilled_bytes > 0) is (pages is not None or force_spill == "true")


def test_a_full_join_with_a_condition_returns_what_has_no_match(world):
    left, right = produce(world, LEFT, 1), produce(world, RIGHT, 2)
    condition = Call("less", (ColumnRef("v"), ColumnRef("k2")))
    task = merging(world, (sort_merge(JoinType.FULL, condition), world.sink(JOINED)), left, right, OPERATOR_PAGES_MIN)
    task.run()
    finish(left, right)
    rows = list(zip(*(column.to_pylist() for column in written(world, JOINED).columns), strict=True))
    # v equals its key below 50, so no pair has v < k2
    assert len(rows) == 9052
    assert sum(v is None for _, v, _ in rows) == 52
    assert sum(v is not None and not w for _, v, w in rows) == 9000


def test_rows_larger_than_all_pages_are_sorted_and_joined(world):
    big = "x" * (1 << 20)
    left_table = pa.table({"k": [2, 1, 2], "v": [1, 2, 3], "t": [big, "a", big]})
    right_table = pa.table({"k2": [2, 2, 5], "w": [big, "b", big]})
    joined = pa.schema([("v", pa.int64()), ("w", pa.string())])
    left, right = produce(world, left_table, 1), produce(world, right_table, 2)
    join = sort_merge(output=((0, 1), (1, 1)), left=left_table, right=right_table, joined=joined)
    merging(world, (join, world.sink(joined)), left, right, OPERATOR_PAGES_MIN).run()
    finish(left, right)
    rows = written(world, joined)
    assert sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == [
        (1, "b"), (1, big), (3, "b"), (3, big),
    ]  # fmt: skip


@pytest.mark.parametrize("share", [0.0, 0.8, 1.0])
@pytest.mark.parametrize("pages", [OPERATOR_PAGES_MIN, 20])
def test_each_sort_gets_at_least_two_pages(world, share, pages):
    left, right = produce(world, LEFT, 1), produce(world, RIGHT, 2)
    join = sort_merge()
    join = msgspec.structs.replace(join, operator=msgspec.structs.replace(join.operator, left_share=share))
    task = merging(world, (join, world.sink(JOINED)), left, right, pages)
    task.run()
    finish(left, right)
    assert written(world, JOINED).num_rows == len(PAIRS)
    assert task.counters().managed_bytes_peak <= pages * world.resources.sizes.page_bytes


def test_a_satisfied_limit_ends_the_merge(world):
    left, right = produce(world, LEFT, 1), produce(world, RIGHT, 2)
    limit = described(LimitOperator(5), JOINED)
    task = merging(world, (sort_merge(), limit, world.sink(JOINED)), left, right, OPERATOR_PAGES_MIN)
    task.run()
    finish(left, right)
    assert written(world, JOINED).num_rows == 5


def test_an_error_of_the_condition_gives_everything_back(world):
    left, right = produce(world, LEFT, 1), produce(world, RIGHT, 2)
    remainder = Call("modulo", (ColumnRef("v"), Call("subtract", (ColumnRef("k2"), ColumnRef("k2")))))
    condition = Call("equal", (remainder, ColumnRef("v")))
    task = merging(world, (sort_merge(condition=condition), world.sink(JOINED)), left, right, OPERATOR_PAGES_MIN)
    with pytest.raises(Exception, match="divide by zero"):
        task.run()
    for thread, _, _ in (left, right):
        thread.join(END_S)
    assert world.staged() == []
