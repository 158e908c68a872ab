"""SQL's functions by the names that the planner gives them, as expressions of ours.

A row is a function of arguments and of the type that SQL wants of the result. Where SQL and Python disagree SQL wins:
integers divide and leave remainders cut toward zero, division of decimals gives a float as that of DuckDB.

Held by: tests/sql/test_expressions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial, reduce
from operator import add
from typing import Any, Final

import pyarrow as pa

from engine.api.expression import Expr
from engine.api.expressions import lit, when
from engine.api.row_functions import coalesce, greatest, least, rand
from engine.errors import NotYetSupportedError, PlanError
from engine.graph.expression import Literal

Arguments = Sequence[Expr]
Function = Callable[[Arguments, pa.DataType | None], Expr]


def _method(name: str) -> Function:
    return lambda arguments, _: getattr(arguments[0], name)(*arguments[1:])


def _all(name: str) -> Function:
    """Return the function of two that goes over any number of arguments."""
    return lambda arguments, _: reduce(lambda left, right: getattr(left, name)(right), arguments)


def _logic(method: str, neutral: bool) -> Function:
    """Return the function of conditions without those that change nothing: k = 1 AND TRUE is k = 1."""

    def call(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
        kept = [one for one in arguments if not _is_bool(one, neutral)]
        if any(_is_bool(one, not neutral) for one in kept):
            return lit(not neutral)
        return reduce(lambda left, right: getattr(left, method)(right), kept) if kept else lit(neutral)

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
    if wanted is not None and pa.types.is_decimal(wanted):
        raise NotYetSupportedError("the remainder of decimals in SQL (write CAST(... AS DOUBLE))")
    # that of Python has the sign of the right side, that of SQL the sign of the left one
    positive = left.abs() % right.abs()
    return when(left < 0).then(-positive).otherwise(positive)


def constant_of(argument: Expr, what: str) -> Any:
    """Return the value of a constant; NotYetSupportedError, which says what it is, for an expression that is none."""
    if not isinstance(argument.expression, Literal):
        raise NotYetSupportedError(f"{what} that is no constant, in SQL")
    return argument.expression.value


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


def _substring(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    start = int(constant_of(arguments[1], "the start of a substring"))
    if start < 0:
        # from the end, as in DuckDB and Spark
        length = None if len(arguments) == 2 else int(constant_of(arguments[2], "the length of a substring"))
        return arguments[0].str.slice(start, None if length is None or start + length >= 0 else start + length)
    if len(arguments) == 2:
        return arguments[0].str.slice(max(0, start - 1))
    length = int(constant_of(arguments[2], "the length of a substring"))
    first = max(0, start - 1)
    return arguments[0].str.slice(first, max(first, start - 1 + length))


def _text(name: str, *whats: str) -> Function:
    """Return a function of texts whose further arguments are constants."""

    def call(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
        constants = [constant_of(each, what) for each, what in zip(arguments[1:], whats, strict=False)]
        found: Expr = getattr(arguments[0].str, name)(*constants)
        return found

    return call


def _round(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    digits = 0 if len(arguments) == 1 else int(constant_of(arguments[1], "the digits of ROUND"))
    return arguments[0].round(digits)


def _truncate(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    if len(arguments) > 1:
        raise NotYetSupportedError("trunc() to a number of digits, in SQL")
    return when(arguments[0] < 0).then(arguments[0].ceil()).otherwise(arguments[0].floor())


def _pad(name: str) -> Function:
    """Return a function that pads a text to a width, and cuts what is longer."""

    def call(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
        width = max(0, int(constant_of(arguments[1], "the width of LPAD and RPAD")))
        fill = str(constant_of(arguments[2], "what LPAD and RPAD write")) if len(arguments) > 2 else " "
        if len(fill) != 1:
            raise NotYetSupportedError("LPAD and RPAD with more or less than one character, in SQL")
        padded: Expr = getattr(arguments[0].str, name)(width, fill)
        return padded.str.slice(0, width)

    return call


def _regexp_replace(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    flags = str(constant_of(arguments[3], "the flags of REGEXP_REPLACE")) if len(arguments) > 3 else ""
    if flags.strip("gims"):
        raise NotYetSupportedError(f"the flags {flags!r} of REGEXP_REPLACE, in SQL (there are g, i, m, s)")
    own = flags.replace("g", "")
    pattern = (f"(?{own})" if own else "") + str(constant_of(arguments[1], "the pattern of REGEXP_REPLACE"))
    replacement = str(constant_of(arguments[2], "what REGEXP_REPLACE writes"))
    if "g" in flags:
        return arguments[0].str.replace(pattern, replacement, regex=True)
    return arguments[0].call("str_replace", pattern, replacement, regex=True, first=True)


def _replace(arguments: Arguments, wanted: pa.DataType | None) -> Expr:
    # nothing is nowhere in a text, where Python finds it between all characters
    is_nothing = constant_of(arguments[1], "what REPLACE looks for") == ""
    return arguments[0] if is_nothing else _text("replace", "", "what REPLACE writes")(arguments, wanted)


def _log(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    if len(arguments) == 1:
        return arguments[0].log10()
    base, value = arguments
    known = {10: value.log10, 2: value.log2}.get(constant_of(base, "the base of LOG"))
    return known() if known is not None else value.ln() / base.ln()


def _levenshtein(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    return arguments[0].str.levenshtein(arguments[1])


def _count_matches(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    return arguments[0].str.count_matches(str(constant_of(arguments[1], "the pattern of REGEXP_COUNT")))


def _make_date(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    year, month, day = (one.cast(pa.string()) for one in arguments)
    return (year.str.pad_left(4, "0") + "-" + month + "-" + day).str.to_date("%Y-%m-%d")


def _repeat(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    text, count = arguments
    return text.str.repeat(when(count < 0).then(0).otherwise(count))


def _concat_ws(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
    separator = str(constant_of(arguments[0], "the separator of CONCAT_WS"))
    return arguments[1].str.concat_ws(separator, *arguments[2:])


def _matches(before: str = "", is_not: bool = False) -> Function:
    """Return whether a regular expression matches somewhere; ``before``: what is written in front of it."""

    def call(arguments: Arguments, _wanted: pa.DataType | None) -> Expr:
        flags = str(constant_of(arguments[2], "the flags of a pattern")) if len(arguments) > 2 else ""
        if flags.strip("ims"):
            raise NotYetSupportedError(f"the flags {flags!r} of a pattern, in SQL (there are i, m, s)")
        written = f"(?{flags})" if flags else before
        found: Expr = arguments[0].str.matches(written + str(constant_of(arguments[1], "a pattern")))
        return ~found if is_not else found

    return call


FUNCTIONS: Final[dict[str, Function]] = {
    "equal": _method("__eq__"),
    "not_equal": _method("__ne__"),
    "lt": _method("__lt__"),
    "lte": _method("__le__"),
    "gt": _method("__gt__"),
    "gte": _method("__ge__"),
    "and": _logic("__and__", neutral=True),
    "or": _logic("__or__", neutral=False),
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
    "like": _text("like", "a pattern of LIKE"),
    "ilike": _text("ilike", "a pattern of ILIKE"),
    "str_concat": _all("__add__"),
    # concat() passes nulls over, || does not
    "concat": lambda arguments, _: reduce(add, (coalesce(one, "") for one in arguments)),
    "btrim": _text("strip", "what BTRIM takes away"),
    "ltrim": _text("lstrip", "what LTRIM takes away"),
    "rtrim": _text("rstrip", "what RTRIM takes away"),
    "left": _text("left", "the length of LEFT"),
    "right": _text("right", "the length of RIGHT"),
    "replace": _replace,
    "strpos": lambda arguments, _: arguments[0].str.find(constant_of(arguments[1], "what STRPOS looks for")) + 1,
    "starts_with": _text("starts_with", "a prefix"),
    "ends_with": _text("ends_with", "a suffix"),
    "contains": _text("contains", "what CONTAINS looks for"),
    "regexp_like": _matches(),
    "regex_match": _matches(),
    "regex_imatch": _matches("(?i)"),
    "regex_not_match": _matches(is_not=True),
    "regex_not_imatch": _matches("(?i)", is_not=True),
    "initcap": _text("title"),
    "reverse": _text("reverse"),
    "levenshtein": _levenshtein,
    "regexp_count": _count_matches,
    "random": lambda _arguments, _: rand(),
    "logb": _log,
    "log": _log,
    "cot": lambda arguments, _: lit(1.0) / arguments[0].tan(),
    "make_date": _make_date,
    "split_part": _text("split_part", "what SPLIT_PART looks for", "the number of a part"),
    "regexp_replace": _regexp_replace,
    "lpad": _pad("pad_left"),
    "rpad": _pad("pad_right"),
    "repeat": _repeat,
    "concat_ws": _concat_ws,
    "md5": _method("md5"),
    "date_part": _date_part,
    "date_trunc": _date_trunc,
    "substring": _substring,
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
    "sign": _method("sign"),
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
#: that may have a value where an argument is null
OVER_NULLS: Final = frozenset(_OVER_NULLS_TEXT.split())
