"""Heads of chains over real exchanges: joins, unions, limits, and what they count."""

import msgspec
import pyarrow as pa
import pyarrow.csv
import pytest

from engine.column_expressions.expressions import col, lit
from engine.errors import DataError
from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.operator_descriptor import HashJoinOperator, IdentityOperator, LimitOperator, OperatorDescriptor
from engine.graph.said_operators import JoinType
from tests.operators.task_world import TaskWorld, described, gate, in_thread, partition

LEFT = pa.table({"k": [n % 50 for n in range(9000)], "v": list(range(9000))})
RIGHT = pa.table({"k2": list(range(40)), "w": [f"w{n}" for n in range(40)]})
JOINED = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("w", pa.string())])
END_S = 60


@pytest.fixture
def world(tmp_path):
    world = TaskWorld(tmp_path)
    yield world
    world.services.partition_manager.close()
    world.close()


def produce(world, table, number, kind="HASH", result_type="PIPELINED"):
    """Start a producer of a table; return its thread, its errors and the gate that reads it."""
    produced, attempt = partition(table.schema, 1, kind, result_type, number)
    head, splits = world.source(table)
    task = world.task((head,), splits, partitions=(produced,), attempt=attempt)
    thread, errors = in_thread(task.run)
    if result_type == "BLOCKING":
        thread.join(END_S)
    return thread, errors, gate(produced)


def finish(*producers):
    for thread, errors, _ in producers:
        thread.join(END_S)
        assert not thread.is_alive()
        assert errors == []


def written(world, schema):
    (file,) = world.staged()
    return pyarrow.csv.read_csv(
        file,
        pyarrow.csv.ReadOptions(column_names=schema.names),
        convert_options=pyarrow.csv.ConvertOptions(column_types=schema),
    )


@pytest.mark.parametrize("build_left", [False, True])
@pytest.mark.parametrize("kind", ["HASH", "FORWARD"])
@pytest.mark.parametrize("result_type", ["PIPELINED", "BLOCKING"])
def test_a_join_takes_its_build_side_first_and_counts_both(world, build_left, kind, result_type):
    left = produce(world, LEFT, 1, kind, result_type)
    right = produce(world, RIGHT, 2, kind, result_type)
    operator = HashJoinOperator(JoinType.INNER, ("k",), ("k2",), build_left, ((0, 0), (0, 1), (1, 1)))
    schemas = (to_plan_schema(LEFT.schema), to_plan_schema(RIGHT.schema))
    join = OperatorDescriptor(0, "join", operator, schemas, to_plan_schema(JOINED), 1.0)
    gates = (left[2], msgspec.structs.replace(right[2], input_index=1))
    task = world.task((join, world.sink(JOINED)), gates=gates)
    task.run()
    finish(left, right)
    rows = written(world, JOINED).sort_by("v")
    wanted = [(v % 50, v, f"w{v % 50}") for v in range(9000) if v % 50 < 40]
    assert list(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == wanted
    counters = task.counters()
    assert (counters.rows_in, counters.rows_out) == (9040, len(wanted))
    assert counters.bytes_in > 0


def test_a_union_reads_all_its_data_sets_through_one_gate(world):
    producers = [produce(world, LEFT, number) for number in (1, 2, 3)]
    task = world.task(
        (described(IdentityOperator(), LEFT.schema), world.sink(LEFT.schema)),
        gates=[producer[2] for producer in producers],
    )
    task.run()
    finish(*producers)
    assert sorted(written(world, LEFT.schema).column("v").to_pylist()) == sorted([*range(9000)] * 3)
    assert task.counters().rows_in == 27000


def test_a_satisfied_limit_drains_its_input_so_that_the_producer_finishes(world):
    producer = produce(world, pa.concat_tables([LEFT] * 20), 1)
    limit = described(LimitOperator(10), LEFT.schema)
    task = world.task((limit, world.sink(LEFT.schema)), gates=(producer[2],))
    task.run()
    finish(producer)
    assert written(world, LEFT.schema).num_rows == 10


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.CROSS])
@pytest.mark.parametrize("count", [5, 10_000_000])
def test_a_satisfied_limit_ends_the_probing_of_a_join_and_drains_its_input(world, how, count):
    late = pa.table({"k": LEFT["k"], "v": list(range(90_000, 99_000))})
    left, right = produce(world, pa.concat_tables([*[LEFT] * 4, late]), 1), produce(world, RIGHT, 2)
    # a row behind the first batches of the probe side, whose key is on both sides, would fail the job
    condition = (col("v") // (lit(98_989) - col("v")) != -1_000_000).expression
    keys = ((), ()) if how is JoinType.CROSS else (("k",), ("k2",))
    operator = HashJoinOperator(how, *keys, False, ((0, 0), (0, 1), (1, 1)), condition)
    schemas = (to_plan_schema(LEFT.schema), to_plan_schema(RIGHT.schema))
    join = OperatorDescriptor(0, "join", operator, schemas, to_plan_schema(JOINED), 1.0)
    gates = (left[2], msgspec.structs.replace(right[2], input_index=1))
    limit = described(LimitOperator(count), JOINED)
    task = world.task((join, limit, world.sink(JOINED)), gates=gates)
    if count > 5:
        with pytest.raises(DataError, match="divide by zero"):
            task.run()
        left[0].join(END_S)
        return
    task.run()
    finish(left, right)
    assert written(world, JOINED).num_rows == 5


def test_a_satisfied_limit_stops_its_source(world):
    head, splits = world.source(LEFT)
    task = world.task((head, described(LimitOperator(10), LEFT.schema), world.sink(LEFT.schema)), splits)
    task.run()
    assert written(world, LEFT.schema).column("v").to_pylist() == list(range(10))
