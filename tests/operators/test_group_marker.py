"""Group boundaries over keys of every type, for batches of any size."""

import pyarrow as pa
import pytest

from engine.functions.group_rows import GROUP_START, NEW_KEY, NEW_SIDE, SIDE
from engine.operators import group_marker
from engine.operators.group_marker import GroupMarker
from tests.integration.row_oracle import KEY_VALUES, key_table, plain, rows_of

MORE_TYPES = {pa.float16(): [0.0, 1.5], pa.dictionary(pa.int8(), pa.string()): ["a", "", "b"]}


def marks_of(table, keys, size):
    marker = GroupMarker(table.schema, keys)
    marked = [marker.mark(batch) for batch in table.to_batches(max_chunksize=size)]
    return [mark for batch in marked for mark in batch.column(GROUP_START).to_pylist()]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("data_type", [*KEY_VALUES, *MORE_TYPES], ids=str)
def test_a_group_begins_where_a_key_differs_from_the_row_before(data_type, size):
    if data_type in MORE_TYPES:
        values = [*MORE_TYPES[data_type], None]
        table = pa.table({"k": pa.array([values[n // 3 % len(values)] for n in range(60)], data_type)})
    else:
        table = key_table(data_type, 60).select(["k"]).combine_chunks()
    keys = [plain(key) for (key,) in rows_of(table)]
    expected = [NEW_KEY if n == 0 or keys[n - 1] != key else 0 for n, key in enumerate(keys)]
    assert marks_of(table, ["k"], size) == expected


def test_any_of_several_keys_begins_a_group_and_without_keys_there_is_one():
    table = pa.table({"a": [1, 1, 1, None, None], "b": ["x", "x", None, None, None]})
    assert marks_of(table, ["a", "b"], 2) == [NEW_KEY, 0, NEW_KEY, NEW_KEY, 0]
    assert marks_of(table, [], 2) == [NEW_KEY, 0, 0, 0, 0]


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
def test_keys_beyond_a_width_are_compared_by_their_digests_and_not_kept(data_type, size, monkeypatch):
    monkeypatch.setattr(group_marker, "WIDE_BYTES", 100)
    texts = [None, "short", "w" * 99, "w" * 100, "w" * 101, "w" * 100 + "x", "w" * 5000, "v" * 5000, None]
    repeats = [1, 2, 3, 1, 2, 1, 3, 2, 2]
    keys = [text for text, count in zip(texts, repeats, strict=True) for _ in range(count)]
    expected = [mark for count in repeats for mark in [NEW_KEY] + [0] * (count - 1)]
    table = pa.table({"k": pa.array(keys, pa.string()).cast(data_type)})
    assert marks_of(table, ["k"], size) == expected
    before = pa.total_allocated_bytes()
    marker = GroupMarker(table.schema, ["k"])
    marker.mark(pa.record_batch({"k": pa.array(["y" * 1_000_000]).cast(data_type)}))
    assert pa.total_allocated_bytes() - before < 100_000


@pytest.mark.parametrize("size", [1, 3, 100])
def test_the_second_side_of_a_group_is_marked(size):
    table = pa.table({"k": [1, 1, 1, 2, 3, 3], SIDE: pa.array([0, 0, 1, 1, 1, 1], pa.int8())})
    assert marks_of(table, ["k"], size) == [NEW_KEY, 0, NEW_SIDE, NEW_KEY, NEW_KEY, 0]
