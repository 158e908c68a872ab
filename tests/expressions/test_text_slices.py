"""Parts of texts by positions of characters."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.expressions.text_slices import sliced

PLACES = st.integers(-20, 20) | st.sampled_from([-(2**63), -(2**63) + 1, 2**63 - 1])
TEXTS = st.none() | st.text(max_size=24) | st.text(alphabet="abé€😀", max_size=40) | st.text("ab", max_size=40)


def unchecked(values: list[bytes], width: pa.DataType) -> pa.Array:
    data = pa.array(values, pa.large_binary() if width == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(width, len(data), data.buffers())


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string()])
@given(values=st.lists(TEXTS), start=PLACES, stop=st.none() | PLACES, skipped=st.integers(0, 3))
def test_parts_are_those_of_python(data_type, values, start, stop, skipped):
    texts = pa.array(values, data_type).slice(skipped)
    found = sliced(texts, start, stop)
    found.validate(full=True)
    assert found.type == data_type
    assert found.to_pylist() == [None if text is None else text[start:stop] for text in values[skipped:]]


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string()])
@given(values=st.lists(st.binary(max_size=20), min_size=1), start=PLACES, stop=st.none() | PLACES)
def test_bytes_that_are_no_text_have_parts(data_type, values, start, stop):
    found = sliced(unchecked(values, data_type), start, stop)
    parts = found.cast(pa.large_binary() if data_type == pa.large_string() else pa.binary()).to_pylist()
    assert all(part in value for part, value in zip(parts, values, strict=True))


def test_a_byte_that_continues_nothing_belongs_to_the_character_before():
    texts = unchecked([b"ab\x80\x80cd", b"abcdefgh\x80ij", b"\x80\x80a"], pa.string())
    assert sliced(texts, 1, 3).cast(pa.binary()).to_pylist() == [b"b\x80\x80c", b"bc", b"a"]
    assert sliced(texts, 0, 8).cast(pa.binary()).to_pylist() == [b"ab\x80\x80cd", b"abcdefgh\x80", b"\x80\x80a"]
    assert sliced(texts, -2, None).cast(pa.binary()).to_pylist() == [b"cd", b"ij", b"\x80\x80a"]


def test_no_rows_and_other_types():
    assert sliced(pa.array([], pa.string()), 1, 2).to_pylist() == []
    assert sliced(pa.array([None, None], pa.string()), 1, 2).to_pylist() == [None, None]
    with pytest.raises(ValueError, match="texts as binary"):
        sliced(pa.array([b"a"]), 0, 1)
