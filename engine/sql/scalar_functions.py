"""SQL's functions by the names that the planner gives them, as expressions of ours.

A row is a function of arguments and of the type that SQL wants of the result. Where SQL and Python disagree SQL wins:
integers divide and leave remainders cut toward zero, division of decimals gives a float as that of DuckDB.

Held by: tests/sql/test_expressions.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import partial, reduce
from operator import add
from typing import Final

import pyarrow as pa

from engine.api.expression import Expr
from engine.api.expressions import lit, when
from engine.api.row_functions import coalesce, greatest, least, rand
from engine.errors import NotYetSupportedError, PlanError
from engine.graph.expression import Expression, Literal, conjunction, disjunction
from engine.sql.arguments import Arguments, Function, as_option, constant_of, value_of
from engine.sql.text_calls import TEXT_FUNCTIONS


def _method(name: str) -> Function:
    return lambda arguments, _: getattr(arguments[0], name)(*arguments[1:])


def _all(name: str) -> Function:
    """Return the function of two that goes over any number of arguments."""
    return lambda arguments, _: reduce(lambda left, right: getattr(left, name)(right), arguments)


def _logic(join: Callable[[Iterable[Expression]], Expression], neutral: bool) -> Function:
    """Return the function of conditions without those that change nothing: k = 1 AND TRUE is k = 1."""

    def call(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
        kept = [one for one in arguments if not _is_bool(one, neutral)]
        if any(_is_bool(one, not neutral) for one in kept):
            return lit(not neutral)
        return Expr(join(one.expression for one in kept)) if kept else lit(neutral)

    return call


def _is_bool(value: Expr, wanted: bool) -> bool:
    return isinstance(value.expression, Literal) and value.expression.value is wanted


def _divide(arguments: Arguments, wanted: pa.DataType | None) -> Expr:
    left, right = arguments
    return _cut_quotient(left, right) if wanted is not None and pa.types.is_integer(wanted) else left / right


def _cut_quotient(left: Expr, right: Expr) -> Expr:
    """Return the whole quotient, cut toward zero: that of ``//`` is cut toward the smaller number."""
    floored = left // right
    is_inexact = (left % right) != 0
    return when(((left < 0) != (right < 0)) & is_inexact).then(floored + 1).otherwise(floored)


def _remainder(arguments: Arguments, wanted: pa.DataType | None) -> Expr:
    left, right = arguments
    if wanted is not None and pa.types.is_integer(wanted):
        return left - right * _cut_quotient(left, right)
    # that of Python has the sign of the right side, that of SQL the sign of the left one
    positive = left.abs() % right.abs()
    return when(left < 0).then(-positive).otherwise(positive)


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


def _date_part(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    part = str(constant_of(arguments[0], "a part of a date")).lower()
    if part not in _PARTS:
        raise _no_unit(part, "a part of a date", tuple(_PARTS))
    return _PARTS[part](arguments[1])


def _no_unit(name: str, what: str, known: Sequence[str]) -> PlanError:
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return PlanError(f"sql: '{name}' is not {what}{hint} (there are {', '.join(known)})")


_TRUNCATED: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")


def _date_trunc(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    unit = str(constant_of(arguments[0], "the unit of date_trunc")).lower()
    if unit not in _TRUNCATED:
        raise _no_unit(unit, "a unit of date_trunc", _TRUNCATED)
    return arguments[1].dt.truncate(unit)


def _round(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    return arguments[0].round(0) if len(arguments) == 1 else arguments[0].call("round", digits=as_option(arguments[1]))


def _truncate(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    if len(arguments) > 1:
        raise NotYetSupportedError("trunc() to a number of digits, in SQL")
    return when(arguments[0] < 0).then(arguments[0].ceil()).otherwise(arguments[0].floor())


def _log(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    if len(arguments) == 1:
        return arguments[0].log10()
    value, base = arguments  # the planner's logb; the query has the base first
    known = {10: value.log10, 2: value.log2}.get(value_of(base))
    return known() if known is not None else value.ln() / base.ln()


def _make_date(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    year, month, day = (one.cast(pa.string()) for one in arguments)
    return (year.str.pad_left(4, "0") + "-" + month + "-" + day).str.to_date("%Y-%m-%d")


FUNCTIONS: Final[dict[str, Function]] = {
    **TEXT_FUNCTIONS,
    "equal": _method("__eq__"),
    "not_equal": _method("__ne__"),
    "lt": _method("__lt__"),
    "lte": _method("__le__"),
    "gt": _method("__gt__"),
    "gte": _method("__ge__"),
    "and": _logic(conjunction, neutral=True),
    "or": _logic(disjunction, neutral=False),
    "not": _method("__invert__"),
    "is_null": _method("is_null"),
    "is_not_null": _method("is_not_null"),
    "is_true": lambda arguments, _: arguments[0].eq_null_safe(lit(True)),
    "is_false": lambda arguments, _: arguments[0].eq_null_safe(lit(False)),
    "is_not_true": lambda arguments, _: ~arguments[0].eq_null_safe(lit(True)),
    "is_not_false": lambda arguments, _: ~arguments[0].eq_null_safe(lit(False)),
    "is_unknown": _method("is_null"),
    "is_not_unknown": _method("is_not_null"),
    "is_not_distinct_from": _method("eq_null_safe"),
    "is_distinct_from": lambda arguments, _: ~arguments[0].eq_null_safe(arguments[1]),
    "add": _all("__add__"),
    "subtract": _method("__sub__"),
    "multiply": _all("__mul__"),
    "divide": _divide,
    "modulus": _remainder,
    "negate": _method("__neg__"),
    "between": _method("between"),
    "str_concat": _all("__add__"),
    # concat() passes nulls over, || does not
    "concat": lambda arguments, _: reduce(add, (coalesce(one, "") for one in arguments)),
    "random": lambda _arguments, _: rand(),
    "logb": _log,
    "log": _log,
    "cot": lambda arguments, _: lit(1.0) / arguments[0].tan(),
    "make_date": _make_date,
    "md5": _method("md5"),
    "date_part": _date_part,
    "date_trunc": _date_trunc,
    "coalesce": lambda arguments, _: coalesce(*arguments) if len(arguments) > 1 else arguments[0],
    "nvl": lambda arguments, _: coalesce(*arguments),
    "nvl2": lambda arguments, _: when(arguments[0].is_not_null()).then(arguments[1]).otherwise(arguments[2]),
    "least": lambda arguments, _: least(*arguments),
    "greatest": lambda arguments, _: greatest(*arguments),
    "nullif": _method("nullif"),
    "bitwise_and": _method("bit_and"),
    "bitwise_or": _method("bit_or"),
    "bitwise_xor": _method("bit_xor"),
    "bitwise_shift_left": _method("shift_left"),
    "bitwise_shift_right": _method("shift_right"),
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
    "degrees": _method("degrees"),
    "radians": _method("radians"),
    "isnan": _method("is_nan"),
    "is_nan": _method("is_nan"),
    "upper": lambda arguments, _: arguments[0].str.upper(),
    "lower": lambda arguments, _: arguments[0].str.lower(),
    "character_length": lambda arguments, _: arguments[0].str.length(),
}
_OVER_NULLS_TEXT: Final = """
    and or is_null is_not_null is_true is_false is_not_true is_not_false is_unknown is_not_unknown is_distinct_from
    is_not_distinct_from concat concat_ws coalesce nvl nvl2 least greatest nullif between
"""
#: functions that may have a value where an argument is null
OVER_NULLS: Final = frozenset(_OVER_NULLS_TEXT.split())
