"""Arrow values as Python's: nothing is dropped silently, and values that Python does not have are errors.

    made_values(name, column) -> list          all at once, by pyarrow; DataError where Python has no such value
    shown_value(scalar) -> object              for messages: Python's value, else a text that stands for it

Python's datetime ends with the year 9999, its time and timedelta with microseconds, its str is Unicode. Arrow goes
further: for such values pyarrow raises errors of several kinds, and it silently cuts nanoseconds off a time of day.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa

from engine.errors import DataError
from engine.records.arrow_functions import pc

_INT64 = pa.int64()
_TEXT_MAX = 40
#: errors of pyarrow for a value that Python does not have
_UNFIT = (OverflowError, ValueError, ArithmeticError)
_ARROW = "use to_arrow(), or a function over Arrow batches"


class _Unshown:
    """Stands for a value that Python does not have, in the text of a row."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def made_values(name: str, column: pa.Array) -> list[Any]:
    """Return a column as Python values; DataError names the column, and the first value that Python does not have."""
    try:
        check_times(name, column)
        return list(column.to_pylist())
    except UnicodeDecodeError as error:
        raise DataError(
            f"column {name!r}: {error.object[:_TEXT_MAX]!r} is not UTF-8, so no str; cast it to binary, or {_ARROW}"
        ) from error
    except _UNFIT as error:
        if isinstance(error, DataError):
            raise
        unfit = next((shown for shown in map(shown_value, column) if isinstance(shown, _Unshown)), f"({error})")
        raise DataError(
            f"column {name!r} is {column.type}: Python has no value for {unfit!r}; cast it first, or {_ARROW}"
        ) from error


def shown_value(scalar: pa.Scalar) -> Any:
    """Return Python's value of a scalar, or what stands for it in a message. Never fails."""
    try:
        if scalar.type == pa.time64("ns") and scalar.is_valid and scalar.value % 1000:
            return _Unshown(str(pc.cast(scalar, pa.string()).as_py()))
        return scalar.as_py()
    except Exception:  # whatever it is, the message is about something else
        return _Unshown(_text_of(scalar))


def _text_of(scalar: pa.Scalar) -> str:
    data_type = scalar.type
    try:
        if pa.types.is_temporal(data_type):
            width = pa.int32() if data_type.bit_width == 32 else _INT64
            return f"{pa.repeat(scalar, 1).view(width)[0].as_py()} ({data_type})"
        if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
            return repr(scalar.as_buffer().to_pybytes()[:_TEXT_MAX])
    except Exception:
        return f"(a {data_type} that cannot be shown)"
    return f"(a {data_type} that cannot be shown)"


@lru_cache(maxsize=1024)
def _has_nanosecond_times(data_type: pa.DataType) -> bool:
    if pa.types.is_nested(data_type):
        return any(_has_nanosecond_times(data_type.field(index).type) for index in range(data_type.num_fields))
    return bool(data_type == pa.time64("ns"))


def check_times(name: str, column: pa.Array | pa.ChunkedArray) -> None:
    """Raise DataError where a time of day has nanoseconds, which Python's time would lose."""
    if not _has_nanosecond_times(column.type):
        return
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    for chunk in chunks:
        for times in _times_of(chunk):
            numbers = times.view(_INT64)
            whole = pc.multiply(pc.divide(numbers, 1000), 1000)
            finer = pc.filter(times, pc.fill_null(pc.not_equal(numbers, whole), False))
            if len(finer):
                text = pc.cast(finer.slice(0, 1), pa.string())[0].as_py()
                raise DataError(
                    f"column {name!r} is {column.type}: {text} has nanoseconds, which Python's time cannot hold; cast"
                    f" it to int64 or text first, or {_ARROW}"
                )


def _times_of(array: pa.Array) -> list[pa.Array]:
    """Return the times of day with nanoseconds that lie in an array of a nested type."""
    data_type = array.type
    if data_type == pa.time64("ns"):
        return [array]
    if not _has_nanosecond_times(data_type):
        return []
    if pa.types.is_struct(data_type):
        children = [*array.flatten()]
    elif pa.types.is_map(data_type):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        children = [entries.slice(first, last - first) for entries in (array.keys, array.items)]
    else:
        children = [array.flatten()]
    return [times for child in children for times in _times_of(child)]
