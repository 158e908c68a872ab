"""Distances of ``range=`` frames, and of as-of joins, in the units of their order key.

    order key              a distance                                     becomes
    integers               a whole number                                 itself
    floats                 a number                                       a float
    decimal(p, s)          a number with at most s digits behind          units in the last place
    date                   whole days: "7 days", timedelta(days=7)        days
    timestamp, time,       "90 minutes", "1 hour 30 s", timedelta         ticks of the type's unit
    duration

Units of time: ns us ms s (or second, sec) m (min, minute) h (hour) d (day) w (week). Months and years have no length.

Held by: tests/column_expressions/test_windows.py
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Final

import pyarrow as pa
from msgspec.structs import replace
from pyarrow import types

from engine.errors import SchemaError
from engine.expressions.common_type import DECIMAL_DIGITS_MAX
from engine.expressions.infer import infer_type
from engine.expressions.text import expression_text
from engine.graph.expression import Over
from engine.graph.window import WindowFrame

_NANOSECONDS: Final = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_DAY: Final = 86_400 * 10**9
_UNITS: Final = {
    **_NANOSECONDS,
    "nanosecond": 1,
    "microsecond": 10**3,
    "millisecond": 10**6,
    "second": 10**9,
    "sec": 10**9,
    "m": 60 * 10**9,
    "minute": 60 * 10**9,
    "hour": 3600 * 10**9,
    "day": _DAY,
    "d": _DAY,
    "week": 7 * _DAY,
    "w": 7 * _DAY,
}
_PART: Final = re.compile(r"\s*([+-]?\d+)\s*([a-z]+)\s*", re.IGNORECASE)
#: largest distance of floats
_MOST: Final = 2**100
#: largest distance of integers that plans and tolerances hold
_MOST_WHOLE: Final = 2**63
#: largest distance of decimals: kernels add it to 38 digits in 128 bits
_MOST_OF_DECIMALS: Final = 2**125


def frame_distances(frame: WindowFrame, over: Over, schema: pa.Schema) -> WindowFrame:
    """Return a frame with the bounds of a range in units of the order key; of rows as it is.

    Raises: SchemaError, where the key has no such distances.
    """
    if frame.kind == "rows" or all(bound in (None, 0) for bound in (frame.start, frame.end)):
        return frame
    text = expression_text(over)
    if len(over.order_by) != 1:
        raise SchemaError(f"{text}: distances of range= are those of one order key, here are {len(over.order_by)}")
    data_type = infer_type(over.order_by[0].expression, schema)
    if types.is_decimal(data_type) and data_type.scale > DECIMAL_DIGITS_MAX:
        raise SchemaError(f"{text}: the order key is {data_type}, in which no distances are measured; cast it")
    most = _MOST_OF_DECIMALS if types.is_decimal(data_type) else _MOST_WHOLE
    start, end = (
        None if bound is None else distance(bound, data_type, text, most) for bound in (frame.start, frame.end)
    )
    if start is not None and end is not None and start > end:
        raise SchemaError(f"{text}: the range begins behind its end")
    return replace(frame, start=_planned(start), end=_planned(end))


def _planned(found: float | None) -> int | float | str | None:
    """Return a distance as plans hold it: a whole number of more than 64 bits as text."""
    return str(found) if isinstance(found, int) and abs(found) >= _MOST_WHOLE else found


def distance(bound: float | str, data_type: pa.DataType, text: str, most_whole: int = _MOST_WHOLE) -> int | float:
    """Return a distance in units of a type; text: what the SchemaError is about where it has none such."""
    found: int | float
    if types.is_temporal(data_type) and not types.is_interval(data_type):
        found = _ticks(bound, data_type, text)
    else:
        found = _number(bound, data_type, text)
    if not abs(found) < (most_whole if isinstance(found, int) else _MOST):
        raise SchemaError(f"{text}: {bound!r} is too far; leave it out where any distance will do")
    return found


def _number(bound: float | str, data_type: pa.DataType, text: str) -> int | float:
    try:
        exact = Decimal(str(bound))
    except InvalidOperation:
        raise SchemaError(f"{text}: the order key is {data_type}, {bound!r} is no number") from None
    if types.is_floating(data_type):
        return float(exact)
    if types.is_integer(data_type) or types.is_decimal(data_type):
        scaled = exact.scaleb(0 if types.is_integer(data_type) else data_type.scale)
        if not exact.is_finite() or scaled != scaled.to_integral_value():
            raise SchemaError(f"{text}: the order key is {data_type}, which has no distance {bound!r}")
        return int(scaled)
    raise SchemaError(f"{text}: the order key is {data_type}; distances of range= are those of numbers and times")


def _ticks(bound: float | str, data_type: pa.DataType, text: str) -> int:
    if bound == 0:
        return 0
    if not isinstance(bound, str):
        raise SchemaError(f"{text}: the order key is {data_type}; say which unit, such as range=('-7 days', '0 days')")
    if types.is_date(data_type):
        unit, unit_text = (_DAY, "whole days") if types.is_date32(data_type) else (10**6, "ms")
    else:
        unit, unit_text = _NANOSECONDS[data_type.unit], data_type.unit
    nanoseconds = _nanoseconds(bound, text)
    if nanoseconds % unit:
        raise SchemaError(f"{text}: the order key is {data_type}, which counts in {unit_text}; not {bound!r}")
    return nanoseconds // unit


def _nanoseconds(bound: str, text: str) -> int:
    total, place, sign = 0, 0, 1
    while place < len(bound) or not bound:
        part = _PART.match(bound, place)
        unit = None if part is None else _UNITS.get(part[2].lower()) or _UNITS.get(part[2].lower().removesuffix("s"))
        if part is None or unit is None:
            raise SchemaError(
                f"{text}: {bound!r} is no time; write '7 days', '-90 min', '1 hour 30 s'"
                " (months and years have no one length)"
            )
        # a sign holds for the parts behind it
        sign = -1 if part[1].startswith("-") else 1 if part[1].startswith("+") else sign
        total += sign * abs(int(part[1])) * unit
        place = part.end()
    return total
