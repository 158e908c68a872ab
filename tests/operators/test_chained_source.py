"""A join whose task reads the rows it probes with itself, beside plain Python."""

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.column_expressions.expressions import col, lit
from engine.errors import DataError, TaskCancelledError
from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.operator_descriptor import (
    FilterOperator,
    HashJoinOperator,
    LimitOperator,
    OperatorDescriptor,
)
from engine.graph.said_operators import JoinType
from tests.operators.task_world import described, gate, in_thread, partition
from tests.operators.test_drivers import END_S, JOINED, LEFT, RIGHT, finish, produce, world, written

__all__ = ["world"]


def join_task(world, build, feed, chain=(), fields=None, **configuration):
    """Return a task that builds from a gate and probes with a feed: (source, its splits, operators behind it).

    build: None where it builds from a feed, too, which is in ``fields``.
    """
    source, splits, steps = feed
    operator = HashJoinOperator(JoinType.INNER, ("k",), ("k2",), False, ((0, 0), (0, 1), (1, 1)))
    schemas = (to_plan_schema(LEFT.schema), to_plan_schema(RIGHT.schema))
    join = OperatorDescriptor(0, "join", operator, schemas, to_plan_schema(JOINED), 1.0)
    gates = () if build is None else (msgspec.structs.replace(build, input_index=1),)
    chain = (join, *chain, world.sink(JOINED))
    return world.task(chain, splits, gates, fields={"feed": (source, *steps), **(fields or {})}, **configuration)


def expected(rows):
    words = dict(zip(RIGHT["k2"].to_pylist(), RIGHT["w"].to_pylist(), strict=True))
    return sorted((row["k"], row["v"], words[row["k"]]) for row in rows if row["k"] in words)


def rows_of(table):
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize("result_type", ["PIPELINED", "BLOCKING"])
@pytest.mark.parametrize("spill", ["true", "false"])
@pytest.mark.parametrize("is_filtered", [False, True])
def test_a_join_probes_with_what_feeds_it_and_counts_it(world, result_type, spill, is_filtered):
    right = produce(world, RIGHT, 2, "HASH", result_type)
    filtered = described(FilterOperator((col("v") < lit(5000)).expression), LEFT.schema)
    task = join_task(world, right[2], (*world.source(LEFT), (filtered,) * is_filtered), debug__force_spill=spill)
    task.run()
    finish(right)
    fed = LEFT.slice(0, 5000) if is_filtered else LEFT
    assert rows_of(written(world, JOINED)) == expected(fed.to_pylist())
    assert task.counters().rows_in == fed.num_rows + RIGHT.num_rows
    assert task.counters().bytes_in > fed.nbytes
    operators = {each.name: (each.rows_in, each.rows_out) for each in task.counters().operators}
    assert operators["SourceOperator"] == (0, LEFT.num_rows)
    assert not is_filtered or operators["FilterOperator"] == (LEFT.num_rows, 5000)
    assert operators["join"][0] == task.counters().rows_in


def test_a_feed_of_no_rows_leaves_nothing(world):
    right = produce(world, RIGHT, 2)
    nothing = described(FilterOperator((col("v") < lit(0)).expression), LEFT.schema)
    task = join_task(world, right[2], (*world.source(LEFT), (nothing,)))
    task.run()
    finish(right)
    assert task.counters().rows_in == RIGHT.num_rows


def test_a_feed_is_not_read_on_when_there_are_rows_enough(world):
    left = pa.concat_tables([LEFT] * 40).combine_chunks()
    right = produce(world, RIGHT, 2)
    task = join_task(world, right[2], (*world.source(left), ()), chain=(described(LimitOperator(5), JOINED),))
    task.run()
    finish(right)
    assert written(world, JOINED).num_rows == 5
    assert task.counters().rows_in < left.num_rows // 2


def test_a_feed_is_not_read_before_the_build_side_is_complete(world):
    produced, _ = partition(RIGHT.schema, 1, "HASH", "PIPELINED", 2)
    task = join_task(world, gate(produced), (*world.source(LEFT), ()))
    thread, errors = in_thread(task.run)
    # Nobody makes the build side: the task waits for it until it is cancelled.
    while task.activity().name != "IDLE":
        thread.join(0.01)
        assert thread.is_alive()
    assert task.counters().rows_in == 0
    task.cancel()
    thread.join(END_S)
    assert [type(error) for error in errors] == [TaskCancelledError]


def test_what_goes_wrong_in_a_feed_is_the_error_of_the_task(world, tmp_path):
    right = produce(world, RIGHT, 2)
    source, splits = world.source(LEFT)
    wrong = FilterOperator((lit(1) // col("v") > lit(0)).expression)
    task = join_task(world, right[2], (source, splits, (described(wrong, LEFT.schema),)))
    with pytest.raises(DataError):
        task.run()
    right[0].join(END_S)
    assert not right[0].is_alive()


@pytest.mark.parametrize("spill", ["true", "false"])
def test_a_join_builds_from_what_it_reads_itself_and_counts_it(world, spill):
    built, _ = world.source(RIGHT)
    kept = described(FilterOperator((col("k2") < lit(50)).expression), RIGHT.schema)
    source, splits = world.source(LEFT)
    join = join_task(world, None, (source, splits, ()), fields={"build_feed": (built, kept)}, debug__force_spill=spill)
    join.run()
    partners = RIGHT.filter(pc.less(RIGHT["k2"], 50))
    words = dict(zip(partners["k2"].to_pylist(), partners["w"].to_pylist(), strict=True))
    rows = [(row["k"], row["v"], words[row["k"]]) for row in LEFT.to_pylist() if row["k"] in words]
    assert rows_of(written(world, JOINED)) == sorted(rows)
    counters = join.counters()
    assert counters.rows_in == LEFT.num_rows + partners.num_rows
    assert [(each.rows_in, each.rows_out) for each in counters.operators[:3]] == [
        (0, LEFT.num_rows),
        (0, RIGHT.num_rows),
        (RIGHT.num_rows, partners.num_rows),
    ]


def test_a_source_of_the_build_side_that_fails_fails_the_join(world):
    built, _ = world.source(RIGHT)
    broken = described(FilterOperator((lit(1) // (col("k2") - col("k2")) < lit(5)).expression), RIGHT.schema)
    source, splits = world.source(LEFT)
    join = join_task(world, None, (source, splits, ()), fields={"build_feed": (built, broken)})
    with pytest.raises(DataError, match="zero"):
        join.run()
