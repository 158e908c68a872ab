"""Partitionings on Spark: which rows a task sees is what a subtask sees, also how many of them and in which order."""

import pyarrow as pa
import pytest

from engine.errors import DataError, JobExecutionError
from tests.dataframes.same_rows import assert_same

pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "i": pa.array([(7 * i) % 40 for i in range(40)], pa.int64()),
        "s": pa.array([None if i % 9 == 0 else f"k{i % 5}" for i in range(40)], pa.string()),
    }
)
SEEN = pa.schema([("rows", pa.int64()), ("total", pa.int64()), ("in_order", pa.bool_())])
TEXT = pa.schema([("i", pa.int64()), ("text", pa.string())])


def seen(rows):
    """Tell what a task sees."""
    values = [row.i for row in rows]
    yield len(values), sum(values), values == sorted(values)


def by_length(i, s, count):
    return (i + len(s or "")) % count


class ByTable:
    """A function with a beginning."""

    def open(self, _context):
        self.places = {f"k{i}": i for i in range(5)}

    def __call__(self, key, count):
        return self.places.get(key, 0) % count


PROGRAMS = {
    "global": lambda data: data.global_().map_partition(seen, SEEN),
    "broadcast": lambda data: data.broadcast().map_partition(seen, SEEN),
    "broadcast to three": lambda data: data.broadcast().set_parallelism(3).map_partition(seen, SEEN),
    "custom": lambda data: data.partition_custom(by_length, "i", "s").map_partition(seen, SEEN),
    "custom by the reader": lambda data: (
        data.partition_custom(ByTable(), "s").map_partition(seen, SEEN).set_parallelism(4)
    ),
    "custom behind a function": lambda data: (
        data.map(lambda row: (row.i + 1, "x"), TEXT)
        .partition_custom(lambda i, count: i % count, "i")
        .map_partition(seen, SEEN)
    ),
    "one task": lambda data: data.map_partition(seen, SEEN).set_parallelism(1),
    "one task in order": lambda data: data.sort("i").map_partition(seen, SEEN).set_parallelism(1),
    "ranges to one task": lambda data: data.partition_by_range("i").set_parallelism(1).map_partition(seen, SEEN),
    "rows of a broadcast": lambda data: data.broadcast(),
    "keys of two types": lambda data: data.co_group(
        data.select(data["i"].cast(pa.decimal128(20, 0)).alias("i"), "s"),
        on="i",
        fn=lambda left, right: [(int((list(left) or list(right))[0].i), "x")],
        schema=TEXT,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_tasks_see_the_rows_of_subtasks(places, name):
    assert_same(*(PROGRAMS[name](env.from_arrow(ROWS)).to_arrow() for env in places))


def test_each_range_is_in_order(places):
    found = places[1].from_arrow(ROWS).partition_by_range("i").map_partition(seen, SEEN).to_arrow()
    assert found.num_rows == 2
    assert all(found.column("in_order").to_pylist())
    assert sum(found.column("total").to_pylist()) == sum(range(40))


def test_key_by_refuses_nulls(places):
    for env in places:
        with pytest.raises(DataError, match=r"Assigned key must not be null! Key s.*filter them out"):
            env.from_arrow(ROWS).key_by("s").map_partition(seen, SEEN).collect()


def test_a_channel_that_is_none_names_the_function(places):
    messages = []
    for env in places:
        with pytest.raises(JobExecutionError, match="expected 0 to 1") as caught:
            env.from_arrow(ROWS).partition_custom(lambda i, count: count, "i").map_partition(seen, SEEN).collect()
        messages.append(str(caught.value).splitlines()[0])
    assert messages[0] == messages[1]
