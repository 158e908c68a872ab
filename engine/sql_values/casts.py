"""Casts as SQL has them: halves are rounded, texts are read with blanks around them, moments are written short.

    cast(value, source, wanted)                 CAST(value AS wanted)
    cast(value, source, wanted, tried=True)     TRY_CAST: null for what the type cannot hold
    text_as(text, wanted)                       a constant text as a value: '2024-1-5' is a DATE, too

Held by: tests/sql/test_expressions.py
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from typing import Final

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit, when
from engine.column_expressions.row_functions import struct
from engine.errors import DataError, PlanError, SchemaError
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of as arrow_scalar
from engine.sql_values.constants import computed, is_constant, scalar_of
from engine.sql_values.data_types import shown_type

_UNITS: Final = ("s", "ms", "us", "ns")
_WIDE_INTEGERS: Final = {pa.int64(), pa.uint64()}
#: type as which a text is read that is a decimal, before it is rounded
_MOST: Final = pa.decimal256(76, 38)
_DATE: Final = re.compile(r"\s*(\d{1,4})-(\d{1,2})-(\d{1,2})\s*")
_TIME: Final = re.compile(r"\s*(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d+))?)?\s*")
_ZONE: Final = re.compile(r"\s*(Z|UTC|[+-]\d{1,2}(?::?\d{2})?)\s*$", re.IGNORECASE)


class NoValueError(PlanError):
    """A text of a query is no value of a type."""

    def __init__(self, text: str, wanted: pa.DataType) -> None:
        self.sentence = f"'{text}' is no {shown_type(wanted)}"
        super().__init__(self.sentence)


def cast(value: Expr, source: pa.DataType, wanted: pa.DataType, tried: bool = False) -> Expr:
    """Return a value as another type; ``tried``: null where that cannot hold it. Raises: PlanError."""
    if source == wanted:
        return value
    if pa.types.is_null(source):
        return lit(None, wanted)
    if pa.types.is_duration(source) and pa.types.is_interval(wanted):
        return value
    if pa.types.is_integer(source) and (pa.types.is_timestamp(wanted) or pa.types.is_date(wanted)):
        raise PlanError("a number as a date or a time; write from_unixtime(seconds), make_date(y, m, d)")
    if pa.types.is_string(source) or pa.types.is_large_string(source):
        return _of_text(value, source, wanted, tried)
    if pa.types.is_nested(source) and pa.types.is_nested(wanted):
        if _is_row(source) and pa.types.is_struct(wanted) and wanted.num_fields == source.num_fields:
            return _of_row(value, source, wanted, tried)
        _check_fields(source, wanted)
    if tried:
        return rounded(value, source, wanted).try_cast(wanted)
    if pa.types.is_floating(wanted) and source in _WIDE_INTEGERS:
        # rounds what a double cannot hold, where a cast is exact or an error
        return value * 1.0 if pa.types.is_float64(wanted) else (value * 1.0).cast(wanted)
    if pa.types.is_timestamp(source) and pa.types.is_string(wanted):
        return _moment_as_text(value, source)
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(wanted) and _is_finer(source, wanted):
        # without the digits that the other type has not
        zoned = value if source.tz == wanted.tz else value.cast(pa.timestamp(source.unit, wanted.tz))
        return zoned.dt.epoch(wanted.unit).cast(pa.timestamp(wanted.unit)).cast(wanted)
    return rounded(value, source, wanted).cast(wanted)


def _is_row(source: pa.DataType) -> bool:
    """Return whether a type is one of row(...), whose fields have no names of their own."""
    return bool(pa.types.is_struct(source)) and [one.name for one in source] == [
        f"c{place}" for place in range(source.num_fields)
    ]


def _of_row(value: Expr, source: pa.DataType, wanted: pa.DataType, tried: bool) -> Expr:
    """Return the values of a row as those of a struct, by their places."""
    pairs = zip(source, wanted, strict=True)
    fields = {new.name: cast(value.field(old.name), old.type, new.type, tried) for old, new in pairs}
    return struct(**fields)


def _check_fields(source: pa.DataType, wanted: pa.DataType) -> None:
    """Raise PlanError where a struct in a type has not the fields of another one: their values would be lost."""
    if pa.types.is_struct(source) and pa.types.is_struct(wanted):
        names, others = [one.name for one in source], [one.name for one in wanted]
        if {one.lower() for one in names} != {one.lower() for one in others}:
            raise PlanError(
                f"a struct of {', '.join(names)} as one of {', '.join(others)}; write {{'name': value, ...}}"
            )
    elif not (pa.types.is_list(source) and pa.types.is_list(wanted)):
        return
    for one, other in zip(_inner(source), _inner(wanted), strict=False):
        _check_fields(one, other)


def _inner(data_type: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_list(data_type):
        return [data_type.value_type]
    return [one.type for one in sorted(data_type, key=lambda field: field.name.lower())]


def rounded(value: Expr, source: pa.DataType, wanted: pa.DataType) -> Expr:
    """Return the rounded operand of a cast: halves of floats to even, others away from zero."""
    if not (pa.types.is_integer(wanted) or pa.types.is_decimal(wanted)):
        return value
    digits = wanted.scale if pa.types.is_decimal(wanted) else 0
    if pa.types.is_floating(source):
        return value.call("round", digits=digits, to_even=pa.types.is_integer(wanted))
    if not pa.types.is_decimal(source) or source.scale <= digits:
        return value
    return value.round(digits)


def text_as(text: str, wanted: pa.DataType) -> pa.Scalar:
    """Return the value that a constant text is. Raises: NoValueError."""
    if pa.types.is_string(wanted):
        return arrow_scalar(text, wanted)
    try:
        found = computed(_of_text(lit(text), pa.string(), wanted, tried=False))
        if is_constant(found):
            return in_microseconds(scalar_of(found))
    except (DataError, SchemaError):
        pass
    return _moment(text, wanted)


def in_microseconds(value: pa.Scalar) -> pa.Scalar:
    """Return a moment that has no nanoseconds in microseconds: what is beside it may be of a year after 2262."""
    data_type = value.type
    is_fine = pa.types.is_timestamp(data_type) and data_type.unit == "ns" and value.is_valid
    return value.cast(pa.timestamp("us", data_type.tz)) if is_fine and value.value % 1000 == 0 else value


def _moment(text: str, wanted: pa.DataType) -> pa.Scalar:
    """Return a date or a time that is written with few digits."""
    found = _DATE.match(text)
    rest = text[found.end() :].lstrip("T") if found else text
    zone = _ZONE.search(rest) if found else None
    clock = _TIME.fullmatch(rest[: zone.start()] if zone else rest)
    try:
        if pa.types.is_date(wanted) and found and not rest.strip():
            return pc.cast(arrow_scalar(date(*map(int, found.groups())), pa.date32()), wanted)
        if pa.types.is_time(wanted) and not found and clock:
            return arrow_scalar(_time(clock), wanted)
        if pa.types.is_timestamp(wanted) and found and (clock or not rest.strip()):
            day = date(*map(int, found.groups()))
            whole = datetime.combine(day, _time(clock) if clock else time())
            if zone is None or wanted.tz is None:
                return pc.cast(arrow_scalar(whole, pa.timestamp("us")), wanted)
            offset = zone[1].upper().replace("UTC", "+00").replace("Z", "+00").replace(":", "")
            shifted = datetime.fromisoformat(
                f"{whole.isoformat()}{offset[0]}{offset[1:].zfill(2)[:2]}:{offset[3:] or '00'}"
            )
            return pc.cast(arrow_scalar(shifted, pa.timestamp("us", "UTC")), wanted)
    except (ValueError, pa.ArrowInvalid, OverflowError):
        pass
    raise NoValueError(text, wanted)


def _time(found: re.Match[str]) -> time:
    hour, minute, second, fraction = found.groups()
    return time(int(hour), int(minute), int(second or 0), int((fraction or "").ljust(6, "0")[:6]))


def _of_text(value: Expr, source: pa.DataType, wanted: pa.DataType, tried: bool) -> Expr:
    if pa.types.is_boolean(wanted):
        value = computed(_as_condition(value))
    elif pa.types.is_time(wanted) or (pa.types.is_timestamp(wanted) and wanted.unit == "ns" and not is_constant(value)):
        value = value.str.replace(r"(\.\d{6})\d+", r"\1", regex=True)
        wanted = pa.timestamp("us", wanted.tz) if pa.types.is_timestamp(wanted) else wanted
    is_read = pa.types.is_integer(wanted) or pa.types.is_floating(wanted) or pa.types.is_temporal(wanted)
    if is_read or pa.types.is_decimal(wanted):
        value = value.str.strip(" ")
    if pa.types.is_decimal(wanted):
        value, source = (value.try_cast(_MOST) if tried else value.cast(_MOST)), _MOST
    value = rounded(value, source, wanted)
    return value.try_cast(wanted) if tried else value.cast(wanted)


def _as_condition(value: Expr) -> Expr:
    """Return a text with true and false for the other words that stand for them."""
    word = value.str.strip(" ").str.lower()
    return (
        when(word.is_in(["t", "yes", "y"]))
        .then("true")
        .when(word.is_in(["f", "no", "n"]))
        .then("false")
        .otherwise(word)
    )


def _is_finer(one: pa.DataType, other: pa.DataType) -> bool:
    return _UNITS.index(one.unit) > _UNITS.index(other.unit)


def _moment_as_text(value: Expr, data_type: pa.DataType) -> Expr:
    """Return a moment as SQL writes it: of the fraction of a second only what is not zero, and the zone as +00."""
    if data_type.tz is not None:
        return _moment_as_text(value.dt.to_timezone("UTC").dt.with_timezone(None), pa.timestamp(data_type.unit)) + "+00"
    text = value.cast(pa.string())
    return text if data_type.unit == "s" else text.str.replace(r"\.?0+$", "", regex=True)
