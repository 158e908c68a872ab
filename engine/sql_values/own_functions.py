"""Functions whose arguments are cast to types of their own.

    OWN["strftime"]   OwnFunction([timestamp, text], text, moment.dt.strftime(format))

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit, when
from engine.column_expressions.row_functions import coalesce
from engine.errors import NotYetSupportedError
from engine.sql_values.arguments import Arguments, as_option, constant_of, value_of
from engine.sql_values.spans import unit_named

if TYPE_CHECKING:
    from engine.choices import DiffUnit, TimeUnit

_MOMENT: Final = pa.timestamp("us")
_QUOTED_NAMES: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_TEXT, _INTEGER, _DOUBLE = pa.string(), pa.int64(), pa.float64()


class OwnFunction(NamedTuple):
    """The types of a function, and its expression."""

    given: Sequence[pa.DataType]
    made: pa.DataType
    call: Callable[[Arguments], Expr]


def _unit(argument: Expr, what: str) -> DiffUnit:
    return cast("DiffUnit", unit_named(str(constant_of(argument, what))))


def _date_diff(arguments: Arguments) -> Expr:
    """Return the number of borders of a unit between two timestamps."""
    unit = _unit(arguments[0], "the unit of date_diff")
    before, after = arguments[1:]
    if unit == "week":
        # seven days, as in DuckDB
        return after.dt.truncate("day").dt.diff(before.dt.truncate("day"), "weeks")
    if unit == "microsecond":
        return after.dt.diff(before, "microseconds")
    return after.dt.truncate(unit).dt.diff(before.dt.truncate(unit), unit)


def _date_sub(arguments: Arguments) -> Expr:
    """Return the number of whole units between two timestamps, the end of a short month as that of a long one."""
    unit, begin, end = _unit(arguments[0], "the unit of date_sub"), *arguments[1:]
    if unit not in ("year", "quarter", "month"):
        return end.dt.diff(begin, unit)
    early, late = when(begin > end).then(end).otherwise(begin), when(begin > end).then(begin).otherwise(end)
    ahead = early.dt.day() - late.dt.day()
    is_at_end = (late.dt.day() == late.dt.last_day().dt.day()) & (ahead > 0)
    moved = when(is_at_end).then(early - (ahead * 86_400 * 10**6).cast(pa.duration("us"))).otherwise(early)
    count = late.dt.diff(moved, unit)
    return when(begin > end).then(-count).otherwise(count)


def _timestamp_diff(arguments: Arguments) -> Expr:
    """Return the number of whole units between two timestamps, days of months by their numbers."""
    return arguments[2].dt.diff(arguments[1], _unit(arguments[0], "the unit of timestampdiff"))


def _of_moment(name: str) -> Callable[[Arguments], Expr]:
    return lambda arguments: getattr(arguments[0].dt, name)()


def _epoch(unit: TimeUnit) -> Callable[[Arguments], Expr]:
    return lambda arguments: arguments[0].dt.epoch(unit)


def _milliseconds(arguments: Arguments) -> Expr:
    """Return milliseconds, halves away from zero as in DuckDB."""
    count = arguments[0].dt.epoch("us")
    whole = (count.abs() + 500) // 1000
    return when(count < 0).then(-whole).otherwise(whole)


def _parsed(is_strict: bool) -> Callable[[Arguments], Expr]:
    def call(arguments: Arguments) -> Expr:
        return arguments[0].str.to_timestamp(str(constant_of(arguments[1], "the format of strptime")), is_strict)

    return call


def _extract(arguments: Arguments) -> Expr:
    """Return a group of the first match, "" where nothing matches."""
    text, pattern, group = arguments
    found = text.call("str_extract", pattern, group=as_option(group))
    return when(text.is_not_null() & pattern.is_not_null()).then(coalesce(found, "")).otherwise(None)


def _extract_all(arguments: Arguments) -> Expr:
    return arguments[0].call("str_extract_all", arguments[1])


def _split_regex(arguments: Arguments) -> Expr:
    return arguments[0].call("str_split", arguments[1], regex=True)


def _json(arguments: Arguments, function: str = "str_json_get", **options: bool | str) -> Expr:
    """Return a part of a JSON text: at ``$.a[0]``, at ``/a/b``, or of a field by its name, with all its dots."""
    path = arguments[1]
    written = value_of(path)
    if isinstance(written, str):
        whole: Expr = lit(_json_path(written))
    else:
        quoted = (
            when(path.str.contains("'")).then(lit('$."') + path + lit('"')).otherwise(lit("$['") + path + lit("']"))
        )
        is_path = path.str.starts_with("$") | path.str.starts_with("/")
        # a pointer of a column is no path, which the call says
        whole = when(is_path).then(path).otherwise(quoted)
    return arguments[0].call(function, path=as_option(whole), **options)


def _json_about(about: str) -> Callable[[Arguments], Expr]:
    return lambda arguments: _json([*arguments, lit("$")][:2], "str_json_about", about=about)


def _json_path(written: str) -> str:
    """Return the path that a constant means. Raises: NotYetSupportedError."""
    if written.startswith("$"):
        if any(one in _QUOTED_NAMES.sub("", written) for one in ("*", "..", "?")):
            raise NotYetSupportedError("a path of JSON with *, .. or a condition")
        return written
    names = written[1:].split("/") if written.startswith("/") else [written]
    if written.startswith("/"):
        names = [one.replace("~1", "/").replace("~0", "~") for one in names]
        if any(one.isdigit() for one in names):
            raise NotYetSupportedError("a place in a JSON pointer; write it as in '$.list[0]'")
    if any("'" in one and '"' in one for one in names):
        raise NotYetSupportedError("a name in JSON with both kinds of quotation marks")
    return "".join(("$", *(f'."{one}"' if "'" in one else f"['{one}']" for one in names)))


def _strftime(arguments: Arguments) -> Expr:
    return arguments[0].call("dt_strftime", format=as_option(arguments[1]))


def _sign(arguments: Arguments) -> Expr:
    """Return -1, 0 or 1, of NaN 0 as in DuckDB."""
    number = arguments[0]
    return when(number.is_nan()).then(0).otherwise(number.sign().cast(_INTEGER))


def _of_seconds(factor: int) -> Callable[[Arguments], Expr]:
    return lambda arguments: (arguments[0] * factor).cast(_MOMENT)


OWN: Final[dict[str, OwnFunction]] = {
    "strftime": OwnFunction([_MOMENT, _TEXT], _TEXT, _strftime),
    "strptime": OwnFunction([_TEXT, _TEXT], _MOMENT, _parsed(is_strict=True)),
    "try_strptime": OwnFunction([_TEXT, _TEXT], _MOMENT, _parsed(is_strict=False)),
    "date_diff": OwnFunction([_TEXT, _MOMENT, _MOMENT], _INTEGER, _date_diff),
    "date_sub": OwnFunction([_TEXT, _MOMENT, _MOMENT], _INTEGER, _date_sub),
    "timestampdiff": OwnFunction([_TEXT, _MOMENT, _MOMENT], _INTEGER, _timestamp_diff),
    "dayname": OwnFunction([_MOMENT], _TEXT, _of_moment("day_name")),
    "monthname": OwnFunction([_MOMENT], _TEXT, _of_moment("month_name")),
    "last_day": OwnFunction([_MOMENT], pa.date32(), _of_moment("last_day")),
    "epoch_ms": OwnFunction([_MOMENT], _INTEGER, _milliseconds),
    "epoch_us": OwnFunction([_MOMENT], _INTEGER, _epoch("us")),
    "unix_timestamp": OwnFunction([_MOMENT], _INTEGER, _epoch("s")),
    "from_unixtime": OwnFunction([_INTEGER], _MOMENT, _of_seconds(10**6)),
    "make_timestamp": OwnFunction([_INTEGER], _MOMENT, _of_seconds(1)),
    "sign": OwnFunction([_DOUBLE], _INTEGER, _sign),
    "isinf": OwnFunction([_DOUBLE], pa.bool_(), lambda arguments: arguments[0].is_infinite()),
    "isfinite": OwnFunction([_DOUBLE], pa.bool_(), lambda arguments: arguments[0].is_finite()),
    "regexp_extract": OwnFunction([_TEXT, _TEXT, _INTEGER], _TEXT, _extract),
    "regexp_extract_all": OwnFunction([_TEXT, _TEXT], pa.list_(_TEXT), _extract_all),
    "string_split_regex": OwnFunction([_TEXT, _TEXT], pa.list_(_TEXT), _split_regex),
    "json_extract_string": OwnFunction([_TEXT, _TEXT], _TEXT, _json),
    "json_extract": OwnFunction([_TEXT, _TEXT], _TEXT, partial(_json, as_json=True)),
    "json_valid": OwnFunction([_TEXT], pa.bool_(), _json_about("valid")),
    "json_type": OwnFunction([_TEXT, _TEXT], _TEXT, _json_about("type")),
    "json_array_length": OwnFunction([_TEXT, _TEXT], _INTEGER, _json_about("length")),
    "json_keys": OwnFunction([_TEXT, _TEXT], pa.list_(_TEXT), _json_about("keys")),
    "sha256_hex": OwnFunction([_TEXT], _TEXT, lambda arguments: arguments[0].sha256()),
    "url_decode": OwnFunction([_TEXT], _TEXT, lambda arguments: arguments[0].str.url_decode()),
}
