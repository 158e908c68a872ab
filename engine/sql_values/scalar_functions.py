"""SQL's functions of numbers, dates and nulls by name, as expressions of ours; a row is a function of arguments.

Held by: tests/sql/test_expressions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import Final

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit
from engine.column_expressions.row_functions import coalesce, greatest, least
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.time_functions import TRUNCATE_UNITS
from engine.near_names import did_you_mean
from engine.sql_values.arguments import Arguments, Function, as_option, constant_of, value_of
from engine.sql_values.text_calls import TEXT_FUNCTIONS


def _method(name: str) -> Function:
    return lambda arguments: getattr(arguments[0], name)(*arguments[1:])


def _part(moment: Expr, part: str) -> Expr:
    found: Expr = getattr(moment.dt, part)()
    return found


_PARTS: Final[dict[str, Callable[[Expr], Expr]]] = {
    **{part: partial(_part, part=part) for part in ("year", "quarter", "month", "week", "day")},
    **{part: partial(_part, part=part) for part in ("hour", "minute", "second")},
    # the seconds of a minute, in a smaller unit
    "millisecond": lambda moment: moment.dt.second() * 10**3 + moment.dt.millisecond(),
    "microsecond": lambda moment: _PARTS["millisecond"](moment) * 10**3 + moment.dt.microsecond(),
    "dow": lambda moment: (moment.dt.weekday() + 1) % 7,
    "isodow": lambda moment: moment.dt.weekday() + 1,
    "doy": partial(_part, part="day_of_year"),
    "isoyear": partial(_part, part="iso_year"),
    "decade": lambda moment: moment.dt.year() // 10,
    "century": lambda moment: (moment.dt.year() + 99) // 100,
    "millennium": lambda moment: (moment.dt.year() + 999) // 1000,
    "epoch": lambda moment: moment.dt.epoch("us") / 10**6,
}


def _date_part(arguments: Arguments) -> Expr:
    part = str(constant_of(arguments[0], "a part of a date")).lower()
    if part not in _PARTS:
        raise _no_unit(part, "a part of a date", tuple(_PARTS))
    return _PARTS[part](arguments[1])


def _no_unit(name: str, what: str, known: Sequence[str]) -> PlanError:
    return PlanError(f"sql: '{name}' is not {what}{did_you_mean(name, known)} (there are {', '.join(known)})")


def _date_trunc(arguments: Arguments) -> Expr:
    given = str(constant_of(arguments[0], "the unit of date_trunc")).lower()
    unit = given.removesuffix("s") if given.removesuffix("s") in TRUNCATE_UNITS else given
    if unit not in TRUNCATE_UNITS:
        raise _no_unit(unit, "a unit of date_trunc", TRUNCATE_UNITS)
    return arguments[1].dt.truncate(unit)


def _round(arguments: Arguments) -> Expr:
    return arguments[0].round(0) if len(arguments) == 1 else arguments[0].call("round", digits=as_option(arguments[1]))


def _truncate(arguments: Arguments) -> Expr:
    if len(arguments) > 1:
        raise NotYetSupportedError("trunc() to a number of digits, in SQL")
    return arguments[0].trunc()


def _log(arguments: Arguments) -> Expr:
    if len(arguments) == 1:
        return arguments[0].log10()
    value, base = arguments
    number = value_of(base)
    return value.log(number) if number in (2, 10) else value.ln() / base.ln()


FUNCTIONS: Final[dict[str, Function]] = {
    **TEXT_FUNCTIONS,
    "str_concat": lambda arguments: reduce(add, arguments),
    "log": _log,
    "cot": lambda arguments: lit(1.0) / arguments[0].tan(),
    "md5": _method("md5"),
    "date_part": _date_part,
    "date_trunc": _date_trunc,
    "coalesce": lambda arguments: coalesce(*arguments) if len(arguments) > 1 else arguments[0],
    "least": lambda arguments: least(*arguments),
    "greatest": lambda arguments: greatest(*arguments),
    "nullif": _method("nullif"),
    "abs": _method("abs"),
    "signum": _method("sign"),
    "trunc": _truncate,
    "floor": _method("floor"),
    "ceil": _method("ceil"),
    "round": _round,
    "sqrt": _method("sqrt"),
    "cbrt": _method("cbrt"),
    "exp": _method("exp"),
    "ln": _method("ln"),
    "log1p": _method("log1p"),
    "expm1": _method("expm1"),
    "log10": _method("log10"),
    "log2": _method("log2"),
    "power": _method("power"),
    "sin": _method("sin"),
    "cos": _method("cos"),
    "tan": _method("tan"),
    "asin": _method("asin"),
    "acos": _method("acos"),
    "atan": _method("atan"),
    "atan2": _method("atan2"),
    **{name: _method(name) for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
    "degrees": _method("degrees"),
    "radians": _method("radians"),
    "upper": lambda arguments: arguments[0].str.upper(),
    "lower": lambda arguments: arguments[0].str.lower(),
}
