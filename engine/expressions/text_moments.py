"""Constant texts beside dates and times: ``col("day") < "1998-09-02"``.

    moments_for_texts(row, operands) -> operands      constants that are texts, as the type of the others

    '2024-02-29'                         a date, as a timestamp its begin
    '2024-02-29 12:30[:15[.123456789]]'  a timestamp, also with T between; beside a date both are compared as timestamps
    '...Z', '...+02:00'                  beside a timestamp with a zone; without one the text is local time there
    '12:30[:15[.123456789]]'             a time of day

A text that is none of these is an error at plan time, and so is one with a zone beside a timestamp without.

Held by: tests/expressions/test_text_moments.py
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.binding import NoMatchError, Operand
from engine.expressions.calendar_functions import local_parts, moments_of
from engine.graph.function_row import FunctionRow
from engine.records.plain_scalars import scalar_of

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT: Final = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?")
_TIME: Final = re.compile(r"\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?")
_PAST_MICROSECONDS: Final = re.compile(r"\.\d{6}(\d{1,3})")
_NANOSECONDS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_INT64: Final = pa.int64()
_INT64_MAX: Final = 2**63 - 1
_EPOCH: Final = datetime.datetime(1970, 1, 1)
#: functions over one type other than comparisons that also take texts for times
_MOVING: Final = frozenset({"subtract", "dt_diff"})


def _typed(operand: Operand, wanted: pa.DataType) -> Operand:
    """Return a constant text as a moment, everything else as it is."""
    constant = operand.constant
    if constant is None or not constant.is_valid or not pa.types.is_string(constant.type):
        return operand
    moment = moment_of(constant.as_py(), wanted)
    return Operand(moment.type, lambda _batch: moment, constant=moment)


def _is_moment(data_type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_date(data_type) or types.is_timestamp(data_type) or types.is_time(data_type))


def moments_for_texts(row: FunctionRow, operands: Sequence[Operand]) -> list[Operand]:
    """Return the operands, texts among them as dates and times where another one is a date or time."""
    operands = list(operands)
    if len(operands) < 2 or not (row.kind(0) == "same" or row.name in _MOVING):
        return operands
    wanted = next((operand.type for operand in operands if _is_moment(operand.type)), None)
    if wanted is None:
        return operands
    return [_typed(operand, wanted) for operand in operands]


def moment_of(text: str, data_type: pa.DataType) -> pa.Scalar:
    """Return a text as a date, timestamp or time that is comparable with a type; NoMatchError where it is none."""
    try:
        if pa.types.is_time(data_type):
            return _time(text, data_type)
        if pa.types.is_date(data_type) and _DATE.fullmatch(text):
            return scalar_of(datetime.date.fromisoformat(text), data_type)
        if not _DATE.fullmatch(text) and not _MOMENT.fullmatch(text):
            raise ValueError
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        example = {True: "'12:30:00'", False: "'2024-02-29' or '2024-02-29 12:30:00'"}[pa.types.is_time(data_type)]
        raise NoMatchError(f"{text!r} is compared with a {data_type}, and is none: write it as {example}") from None
    zone = data_type.tz if pa.types.is_timestamp(data_type) else None
    if moment.tzinfo is not None and zone is None:
        raise NoMatchError(f"{text!r} has a zone and the other side, a {data_type}, has none")
    unit = data_type.unit if pa.types.is_timestamp(data_type) else "s"
    is_utc = moment.tzinfo is not None
    if is_utc:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    found, unit = _ticks((moment - _EPOCH) // _MICROSECOND, text, unit)
    if abs(found) > _INT64_MAX:
        raise NoMatchError(f"{text!r} is beyond the years of a {pa.timestamp(unit)}, 1677 to 2262")
    local = pa.array([found], _INT64).view(pa.timestamp(unit))
    if is_utc:
        return local.cast(_INT64).cast(pa.timestamp(unit, zone))[0]
    return moments_of(*local_parts(local), pa.timestamp(unit, zone))[0]


def _ticks(microseconds: int, text: str, unit: str) -> tuple[int, str]:
    """Return a number of microseconds, and what the text has beyond them, in a unit or in a finer one that it needs."""
    past = _PAST_MICROSECONDS.search(text)
    nanoseconds = microseconds * 1000 + (int(past[1].ljust(3, "0")) if past else 0)
    if nanoseconds % _NANOSECONDS[unit]:
        unit = "ns" if nanoseconds % 1000 else "us"
    return nanoseconds // _NANOSECONDS[unit], unit


def _time(text: str, data_type: pa.DataType) -> pa.Scalar:
    if not _TIME.fullmatch(text):
        raise ValueError
    time = datetime.time.fromisoformat(text)
    since = datetime.datetime.combine(_EPOCH, time) - _EPOCH
    found, unit = _ticks(since // _MICROSECOND, text, data_type.unit)
    return pa.array([found], pa.int32() if unit in ("s", "ms") else _INT64).view(_time_type(unit))[0]


def _time_type(unit: str) -> pa.DataType:
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
