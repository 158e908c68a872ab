"""AT TIME ZONE as a call: the planner makes a cast of it, and Substrait loses the zone.

    ts AT TIME ZONE 'Europe/Berlin'      local_at_zone_0(ts, 'Europe/Berlin')      the moment when clocks there show ts
    tz AT TIME ZONE 'Europe/Berlin'      moment_at_zone_0(tz, 'Europe/Berlin')     what clocks there show at a moment

Which of both it is the planner knows, since it knows types. It is told of functions that take one type, and says which
one there is where that is another. The number says which AT TIME ZONE of the text it is; equal ones have one.

Of a local time that is there twice the later moment is meant, and one that is left out is counted on from the clock
before, as in DuckDB.

Held by: tests/sql/test_zones.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa

from engine.api.expression import Expr
from engine.api.expressions import when
from engine.api.row_functions import greatest
from engine.errors import PlanError
from engine.sql.arguments import constant_of
from engine.sql.tokens import Token, after, before, primary_begin, primary_end, text_of, tokens, words_from

#: types of values before AT TIME ZONE, by number
ZonedTypes = Mapping[int, pa.DataType]

_WORDS: Final = re.compile(r"\bAT\s+TIME\s+ZONE\b", re.IGNORECASE)
_OF_LOCAL, _OF_MOMENT = "local_at_zone_", "moment_at_zone_"
_CALL: Final = re.compile(rf"\b({_OF_LOCAL}|{_OF_MOMENT})(\d+)\b")
_UNFIT: Final = re.compile(
    rf"satisfy a call to '(?:{_OF_LOCAL}|{_OF_MOMENT})(\d+)' function: coercion from "
    r"(?:(Date32)|Timestamp\((\w+)(?:, \"([^\"]*)\")?\))?"
)
_SHOWN: Final = re.compile(rf"(?:{_OF_LOCAL}|{_OF_MOMENT})\d+\(((?:(?!_at_zone_).)*?), ?('[^']*')\)")
_DEFAULT: Final = pa.timestamp("us")
_DAY: Final = timedelta(days=1)


class ZonedTypeError(Exception):
    """The value before an AT TIME ZONE is of another type."""

    def __init__(self, number: int, data_type: pa.DataType) -> None:
        super().__init__(number, data_type)
        self.number = number
        self.data_type = data_type


def with_zone_calls(text: str, types: ZonedTypes) -> str:
    """Return a query with a call for each AT TIME ZONE; without a type it is taken for one of a local time.

    In a text of one SELECT equal ones are one call: a key of GROUP BY is what stands in its list. In several
    the same words may have several types.
    """
    if not _WORDS.search(text):
        return text
    found = tokens(text)
    numbers: dict[str, int] = {}
    are_shared = sum(token.word == "SELECT" for token in found) == 1
    at = 0
    while at < len(found):
        if words_from(found, at, 3) == ["AT", "TIME", "ZONE"]:
            begin, zone = primary_begin(found, before(found, at)), after(found, after(found, after(found, at)))
            end = primary_end(found, zone)
            written = text_of(found[begin:end]) if are_shared else str(len(numbers))
            number = numbers.setdefault(written, len(numbers))
            data_type = types.get(number, _DEFAULT)
            is_moment = pa.types.is_timestamp(data_type) and data_type.tz is not None
            name = f"{_OF_MOMENT if is_moment else _OF_LOCAL}{number}"
            call = [Token(name, name.upper()), Token("(", "("), *found[begin:at], Token(",", ","), *found[zone:end]]
            found[begin:end] = [*call, Token(")", ")")]
            at = begin + len(call)
        at += 1
    return text_of(found)


def register_zone_calls(session: Any, text: str, types: ZonedTypes) -> None:
    """Register the functions that a text calls with a session."""
    from datafusion import udf

    for kind, number in sorted(set(_CALL.findall(text))):
        made = pa.timestamp("us", "UTC" if kind == _OF_LOCAL else None)
        given = [types.get(int(number), _DEFAULT), pa.string()]
        # never called: the planner sees no rows
        session.register_udf(udf(lambda *_: None, given, made, "immutable", f"{kind}{number}"))


def check_zoned_type(error: Exception, types: ZonedTypes) -> None:
    """Raise ZonedTypeError where the planner says that a call has another type; PlanError where it is no time."""
    unfit = _UNFIT.search(str(error))
    if unfit is None:
        return
    number = int(unfit[1])
    if number in types or not (unfit[2] or unfit[3]):
        raise PlanError("sql: AT TIME ZONE of what is no TIMESTAMP; write CAST(... AS TIMESTAMP) AT TIME ZONE")
    unit = "us" if unfit[3] == "\u00b5s" else unfit[3]
    raise ZonedTypeError(number, pa.date32() if unfit[2] else pa.timestamp(unit, unfit[4]))


def zone_call(name: str, arguments: Sequence[Expr]) -> Expr | None:
    """Return the expression of a call; None for another function."""
    if not _CALL.fullmatch(name):
        return None
    value, zone = arguments[0], str(constant_of(arguments[1], "the zone of AT TIME ZONE"))
    if name.startswith(_OF_MOMENT):
        return _shown(value.cast(pa.timestamp("us", "UTC")), zone)
    local = value.cast(pa.timestamp("us"))
    first = _moment(local, zone)
    later = greatest(_moment(local - _DAY, zone) + _DAY, _moment(local + _DAY, zone) - _DAY)
    is_later = (_shown(later, zone) == local) | (_shown(first, zone) != local)
    return when(is_later).then(later).otherwise(first)


def as_written(name: str) -> str:
    """Return the name of a column with AT TIME ZONE for calls."""
    before_it = ""
    while name != before_it:
        before_it, name = name, _SHOWN.sub(r"\1 AT TIME ZONE \2", name)
    return name


def _moment(local: Expr, zone: str) -> Expr:
    return local.dt.with_timezone(zone).dt.to_timezone("UTC")


def _shown(moment: Expr, zone: str) -> Expr:
    return moment.dt.to_timezone(zone).dt.with_timezone(None)
