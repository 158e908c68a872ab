"""Values by row: what Arrow's take gives, for every column."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engine.records.text_take import taken
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(max_examples=150, deadline=None)
@given(st.lists(st.none() | st.text(max_size=40), min_size=1, max_size=60), st.data())
def test_texts_of_any_length_are_taken_from_anywhere(texts: list[str | None], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(texts) - 1))
    column = pa.array(texts, data.draw(st.sampled_from([pa.string(), pa.binary()]))).slice(start)
    rows = data.draw(st.lists(st.integers(0, len(column) - 1), max_size=80))
    skipped = data.draw(st.integers(0, len(rows)))
    indices = pa.array(rows, pa.int64()).slice(skipped)
    found = taken(column, indices)
    found.validate(full=True)
    assert found.equals(pc.take(column, indices))


def test_a_text_at_the_end_of_its_buffer_is_not_read_beyond_it() -> None:
    data = pa.py_buffer(b"abc" * 5)
    offsets = pa.py_buffer(memoryview(pa.array(range(0, 16, 3), pa.int32()).buffers()[1])[:24])
    column = pa.Array.from_buffers(pa.string(), 5, [None, offsets, data], 0)
    assert taken(column, pa.array([4, 4, 0, 3])).to_pylist() == ["abc"] * 4


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "c"]),
        pa.array([1, None, 3]),
        pa.array([[1], [], [2, 3]]),
        pa.array(["a", "b", "c"], pa.large_string()),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array(["", "", ""]),
        pa.nulls(3),
    ],
)
def test_other_columns_are_taken_too(column: pa.Array) -> None:
    indices = pa.array([2, 0, 1, 1])
    assert taken(column, indices).equals(pc.take(column, indices))
    assert taken(column, indices.slice(4)).equals(pc.take(column, indices.slice(4)))
