"""Cells of spreadsheets as columns: their types, and their values as one of these.

    numbers, all whole        int64        a sheet has doubles alone: 3 is 3.0 there
    numbers                   double
    dates, moments of a day   date32, timestamp[us]; both in a column: timestamp[us]
    times, true and false     time64[us], bool; durations: duration[us]
    texts, and all else       string: a number among texts is its text, and a warning says so

An empty cell, and an empty text, is null. Cells are objects of Python, as the library gives them.

Held by: tests/connectors/test_excel.py
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

#: limit up to which all whole numbers are doubles
_EXACT_MAX: Final = 2**53
_KINDS: Final[dict[type, str]] = {
    bool: "bool",
    float: "double",
    int: "double",
    str: "string",
    dt.datetime: "moment",
    dt.date: "date",
    dt.time: "time",
    dt.timedelta: "duration",
}
_TYPES: Final = {
    frozenset(["bool"]): pa.bool_(),
    frozenset(["whole"]): pa.int64(),
    frozenset(["double"]): pa.float64(),
    frozenset(["whole", "double"]): pa.float64(),
    frozenset(["date"]): pa.date32(),
    frozenset(["moment"]): pa.timestamp("us"),
    frozenset(["date", "moment"]): pa.timestamp("us"),
    frozenset(["time"]): pa.time64("us"),
    frozenset(["duration"]): pa.duration("us"),
}


def kind_of(cell: Any) -> str:
    """Return the kind of a cell, "" for an empty one."""
    if cell is None or cell == "":
        return ""
    kind = _KINDS.get(type(cell), "string")
    return "whole" if kind == "double" and float(cell).is_integer() and abs(cell) <= _EXACT_MAX else kind


def type_of(kinds: frozenset[str]) -> pa.DataType:
    """Return the type of a column with cells of these kinds."""
    return _TYPES.get(kinds - {""}, pa.string())


def column_of(cells: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    """Return cells as an array. Raises: ValueError: (place, cell) of one that is not of the type."""
    convert = _conversion(data_type)
    values: list[Any] = []
    for place, cell in enumerate(cells):
        if cell is None or cell == "":
            values.append(None)
            continue
        try:
            values.append(convert(cell))
        except (ValueError, TypeError):
            raise ValueError(place, cell) from None
    try:
        return pa.array(values, data_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        wrong = next(place for place, value in enumerate(values) if not _fits(value, data_type))
        raise ValueError(wrong, cells[wrong]) from None


def _fits(value: Any, data_type: pa.DataType) -> bool:
    try:
        pa.array([value], data_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
    return True


def _conversion(data_type: pa.DataType) -> Callable[[Any], Any]:
    types = pa.types
    if types.is_string(data_type):
        return cell_text
    if types.is_integer(data_type):
        return _whole
    if types.is_floating(data_type):
        return lambda cell: float(_number(cell))
    if types.is_decimal(data_type):
        return lambda cell: _decimal(_number(cell))
    if types.is_timestamp(data_type):
        return _moment
    if types.is_date(data_type):
        return _day
    return lambda cell: cell


def _number(cell: Any) -> Any:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        raise ValueError(cell)
    return cell


def _whole(cell: Any) -> int:
    number = _number(cell)
    if not float(number).is_integer():
        raise ValueError(cell)
    return int(number)


def _decimal(number: float) -> Any:
    from decimal import Decimal

    return Decimal(repr(number)) if not float(number).is_integer() else Decimal(int(number))


def cell_text(cell: Any) -> str:
    """Return a cell as text: 3 of 3.0, since sheets have no whole numbers."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return str(cell).lower()
    return str(int(cell)) if kind_of(cell) == "whole" else str(cell)


def _moment(cell: Any) -> dt.datetime:
    if isinstance(cell, dt.datetime):
        return cell
    if isinstance(cell, dt.date):
        return dt.datetime(cell.year, cell.month, cell.day)
    raise ValueError(cell)


def _day(cell: Any) -> dt.date:
    if isinstance(cell, dt.datetime) and cell.time() != dt.time():
        raise ValueError(cell)
    if not isinstance(cell, dt.date):
        raise ValueError(cell)
    return cell.date() if isinstance(cell, dt.datetime) else cell
