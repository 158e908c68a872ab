"""Arrow values become Python's, or an error that names column and value; messages show what stands for them."""

import datetime

import pyarrow as pa
import pytest

from engine.errors import DataError
from engine.records.python_values import shown_value
from engine.records.value_reader import python_values

T = pa.time64("ns")
NESTED = {
    "plain": (T, lambda time: time),
    "list": (pa.list_(T), lambda time: [0, time]),
    "struct": (pa.struct([("x", pa.list_(T, 1))]), lambda time: {"x": [time]}),
    "map": (pa.map_(pa.string(), T), lambda time: [("k", time)]),
}


@pytest.mark.parametrize("kind", NESTED)
def test_nanoseconds_of_a_time_of_day_are_never_lost_in_silence(kind):
    data_type, make = NESTED[kind]
    array = pa.array([make(5), make(1000), None, make(86_399_999_999_000)], data_type)
    assert len(python_values("a", array.slice(1))) == 3
    for values in (array, pa.chunked_array([array.slice(1), array])):
        with pytest.raises(DataError, match=r"column 'a' is .*: 00:00:00\.000000005 has nanoseconds"):
            python_values("a", values)
    assert repr(shown_value(pa.scalar(5, T))) == "00:00:00.000000005"
    masked = pa.Array.from_buffers(T, 1, [pa.py_buffer(b"\0"), pa.py_buffer(b"\1" * 8)])
    assert python_values("a", masked) == [None]


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (pa.array([0, 2**60], pa.timestamp("s")), "1152921504606846976 (timestamp[s])"),
        (pa.array([0, -(2**60)], pa.timestamp("ms", "UTC")), "-1152921504606846976 (timestamp[ms, tz=UTC])"),
        (pa.array([0, 2**31 - 1], pa.int32()).view(pa.date32()), "2147483647 (date32[day])"),
        (pa.array([0, 2**60], pa.duration("s")), "1152921504606846976 (duration[s])"),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_what_python_has_no_value_for_is_named_and_shown(array, shown):
    assert python_values("a", array.slice(0, 1)) == array.slice(0, 1).to_pylist()
    with pytest.raises(DataError) as error:
        python_values("a", array)
    assert f"column 'a' is {array.type}: Python has no value for {shown}" in str(error.value)
    assert repr(shown_value(array[1])) == shown
    assert shown_value(array[0]) in (datetime.date(1970, 1, 1), array[0].as_py())


def test_text_that_is_not_utf8_is_shown_as_bytes():
    array = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    with pytest.raises(DataError, match="is not UTF-8"):
        python_values("a", array)
    assert repr(shown_value(array[0])) == repr(b"\xff\xfe")
