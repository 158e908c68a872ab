"""The head of an as-of join by keys over real exchanges: in memory, in files, parted again, sorted, cancelled."""

import bisect

import msgspec
import pyarrow as pa
import pytest

from engine.errors import TaskCancelledError
from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.operator_descriptor import OperatorDescriptor, PartitionedAsofOperator
from engine.graph.said_operators import AsofDirection
from engine.memory.page_budget import OPERATOR_PAGES_MIN
from engine.operators import partitioned_asof_driver
from engine.operators.partitioned_asof_driver import PartitionedAsofDriver
from tests.operators.test_drivers import finish, produce, world, written

__all__ = ["world"]

JOINED = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("w", pa.string())])


def sides(left_count, right_count, keys, width=0):
    """Rows by keys, the left at even and the right at odd times, in no order of time."""
    left = pa.table(
        {
            "k": [keys[n % len(keys)] for n in range(left_count)],
            "t": [2 * (7 * n % left_count) for n in range(left_count)],
            "v": list(range(left_count)),
        }
    )
    right = pa.table(
        {
            "k2": [keys[n % len(keys)] for n in range(right_count)],
            "t2": [2 * (11 * n % right_count) + 1 for n in range(right_count)],
            "w": [f"w{n}" + "x" * width for n in range(right_count)],
        }
    )
    return left, right


def expected_rows(left, right):
    """(k, v, w) of each left row; what is written of no match is empty."""
    times = {}
    for key, time, name in zip(*right.to_pydict().values(), strict=True):
        times.setdefault(key, []).append((time, name))
    for found in times.values():
        found.sort()
    rows = []
    for key, time, value in zip(*left.to_pydict().values(), strict=True):
        found = times.get(key, []) if key is not None else []
        place = bisect.bisect_right(found, (time, chr(0x10FFFF)))
        rows.append((key, value, found[place - 1][1] if place else None))
    return rows


def asof(left, right):
    operator = PartitionedAsofOperator(
        ("k", "t"), ("k2", "t2"), AsofDirection.BACKWARD, False, None, ((0, 0), (0, 2), (1, 2))
    )
    schemas = (to_plan_schema(left.schema), to_plan_schema(right.schema))
    return OperatorDescriptor(0, "join", operator, schemas, to_plan_schema(JOINED), 1.0)


def joining(world, left, right, kind="HASH", result_type="PIPELINED", pages=None, **configuration):
    produced = produce(world, left, 1, kind, result_type), produce(world, right, 2, kind, result_type)
    gates = (produced[0][2], msgspec.structs.replace(produced[1][2], input_index=1))
    chain = (asof(left, right), world.sink(JOINED))
    return world.task(chain, gates=gates, slot_pages=pages, **configuration), produced


@pytest.fixture
def ways(monkeypatch):
    """How partitions were joined, in order."""
    found = []

    def seen(name):
        method = getattr(PartitionedAsofDriver, name)

        def wrapped(self, *args, **options):
            found.append(name)
            return method(self, *args, **options)

        monkeypatch.setattr(PartitionedAsofDriver, name, wrapped)

    for name in ("_partitions", "_joined", "_sorted", "_put_back"):
        seen(name)
    return found


def assert_joined(world, task, produced, left, right):
    task.run()
    finish(*produced)
    rows = list(zip(*(column.to_pylist() for column in written(world, JOINED).columns), strict=True))
    # the written text says nothing of the difference between null and empty
    expected = [(key, value, name or None) for key, value, name in expected_rows(left, right)]
    assert sorted(((k, v, w or None) for k, v, w in rows), key=str) == sorted(expected, key=str)
    counters = task.counters()
    assert (counters.rows_in, counters.rows_out) == (left.num_rows + right.num_rows, left.num_rows)
    assert counters.bytes_in > 0
    assert counters.managed_bytes_peak <= world.resources.sizes.pages * world.resources.sizes.page_bytes
    return counters


@pytest.mark.parametrize("kind", ["HASH", "FORWARD"])
@pytest.mark.parametrize("result_type", ["PIPELINED", "BLOCKING"])
def test_what_fits_stays_in_memory(world, kind, result_type, ways):
    left, right = sides(2000, 3000, range(40))
    task, produced = joining(world, left, right, kind, result_type)
    assert assert_joined(world, task, produced, left, right).spilled_bytes == 0
    assert set(ways) == {"_partitions", "_joined"}


def test_few_pages_are_for_a_sort(world, ways):
    left, right = sides(2000, 3000, range(40))
    task, produced = joining(world, left, right, pages=OPERATOR_PAGES_MIN)
    assert assert_joined(world, task, produced, left, right).spilled_bytes > 0
    assert ways == ["_sorted"]


def test_partitions_in_files_are_joined_one_after_the_other(world, ways):
    left, right = sides(3000, 12000, range(400), width=100)
    task, produced = joining(world, left, right)
    assert assert_joined(world, task, produced, left, right).spilled_bytes > 0
    assert "_joined" in ways
    assert "_sorted" not in ways


def test_one_key_with_more_rows_than_memory_is_sorted(world, ways):
    left, right = sides(3000, 12000, [*[5] * 40, *range(400)][:50], width=100)
    task, produced = joining(world, left, right)
    assert assert_joined(world, task, produced, left, right).spilled_bytes > 0
    assert "_sorted" in ways
    assert "_joined" in ways


def test_forced_to_spill_partitions_are_parted_again_and_sorted(world, ways):
    left, right = sides(600, 900, [None, *range(150), *[7] * 30])
    task, produced = joining(world, left, right, debug__force_spill="true")
    assert assert_joined(world, task, produced, left, right).spilled_bytes > 0
    assert ways.count("_partitions") > 1
    assert {"_joined", "_sorted"} <= set(ways)


def test_a_partition_in_memory_that_is_too_large_to_join_at_once_goes_to_a_file(world, ways, monkeypatch):
    monkeypatch.setattr(partitioned_asof_driver, "ROW_SCRATCH_BYTES", 1 << 12)
    left, right = sides(1500, 1500, [1, 1, 1, 2, 3, 4])
    task, produced = joining(world, left, right)
    assert_joined(world, task, produced, left, right)
    assert "_put_back" in ways


def test_rows_larger_than_all_pages_are_joined(world):
    big = "x" * (1 << 20)
    left, right = sides(10, 20, [1, 2])
    right = right.append_column("w3", pa.array([big + name for name in right["w"].to_pylist()]))
    right = right.select(["k2", "t2", "w3"]).rename_columns(["k2", "t2", "w"])
    task, produced = joining(world, left, right)
    assert_joined(world, task, produced, left, right)


def test_it_ends_where_it_is_cancelled(world):
    left, right = sides(3000, 12000, range(400), width=100)
    task, produced = joining(world, left, right, result_type="BLOCKING")
    task.cancel()
    with pytest.raises(TaskCancelledError):
        task.run()
    finish(*produced)
