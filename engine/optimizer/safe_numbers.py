"""Safe arguments of aggregates: those with a value for every row, and those whose sums cannot overflow.

    is_safe_call(call, argument type, schema) -> whether rows that are not selected may be aggregated too

Floats and quotients have infinities; integers overflow, which are added up in 64 bits, and decimals that need more than
38 digits (``engine.expressions.decimal_widths``; 76 where one has more already). Columns of integers of up to 32 bits
may be added: there are not so many rows. So may what is computed of them in 64 bits, and stays far below their limit.

Held by: tests/optimizer/test_aggregate_pushdown.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from engine.graph.expression import AggregateCall, Call, Case, Cast, ColumnRef, Expression, Literal
from engine.graph.plan_schema import PlanSchema
from engine.optimizer.expression_rewriting import cannot_raise

#: digits that integers count as beside decimals; sums of up to 32 bits cannot overflow
_SMALL_INTEGERS: Final = dict.fromkeys(("int8", "uint8", "int16", "uint16", "int32", "uint32"), 10)
_INTEGERS: Final = {**_SMALL_INTEGERS, "int64": 19, "uint64": 20}
_FLOATS: Final = ("halffloat", "float", "double")
_DECIMAL: Final = re.compile(r"decimal(?:32|64|128|256)\((\d+), (-?\d+)\)")
_NUMBER: Final = re.compile(r"-?(\d+)\.?(\d*)")
#: precision of results, of those over wider decimals, and of sums over so many rows
_DIGITS_MAX: Final = 38
_WIDE_DIGITS_MAX: Final = 76
_DIGITS_OF_ROWS: Final = 12
#: digits of which 64 bits have all numbers
_DIGITS_OF_INTEGERS: Final = 18
_COMPARISONS: Final = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


class _Digits(NamedTuple):
    """The digits before and behind the point that a number may have; of a float neither: it has any number of them."""

    whole: int = 0
    scale: int = 0


_FLOAT: Final = _Digits()


def is_safe_call(call: AggregateCall, argument_type: str, schema: PlanSchema) -> bool:
    """Whether an aggregate over any rows of a schema has a value."""
    if call.argument is None:
        return True
    if not cannot_raise(call.argument, schema) and _digits(call.argument, schema) is None:
        return False
    if call.function not in ("sum", "product"):
        return True
    decimal = _DECIMAL.fullmatch(argument_type)
    if decimal is not None:
        widest = _WIDE_DIGITS_MAX if argument_type.startswith("decimal256") else _DIGITS_MAX
        return int(decimal[1]) + _DIGITS_OF_ROWS <= widest
    if argument_type in (*_FLOATS, *_SMALL_INTEGERS) or _is_small(call.argument, schema):
        return True
    digits = _digits(call.argument, schema) if argument_type in _INTEGERS else None
    return digits is not None and digits != _FLOAT and digits.whole + _DIGITS_OF_ROWS <= _DIGITS_OF_INTEGERS


def _is_small(expression: Expression, schema: PlanSchema) -> bool:
    """Whether an integer is a narrow column in a wide type."""
    match expression:
        case Cast(operand=ColumnRef(name=name)) | ColumnRef(name=name):
            return schema.column(name).type_text in _SMALL_INTEGERS
        case _:
            return False


def _digits(expression: Expression, schema: PlanSchema) -> _Digits | None:
    """Return the digits that a number of every row may have, _FLOAT for a float; None for anything else."""
    match expression:
        case ColumnRef(name=name):
            return _digits_of_type(schema.column(name).type_text)
        case Literal(value=bool() | str()):
            return None
        case Literal(value=float()):
            return _FLOAT
        case Literal(value=None | int(), text=text):
            number = _NUMBER.fullmatch(text)
            return None if number is None else _Digits(len(number[1]), len(number[2]))
        case Cast():
            return _digits_of_cast(expression, schema)
        case Call(function="divide", arguments=arguments):
            return None if None in (_digits(each, schema) for each in arguments) else _FLOAT
        case Call(function="add" | "subtract" | "multiply", arguments=(left, right)):
            return _digits_of_both(expression, left, right, schema)
        case Case(branches=branches, otherwise=otherwise):
            if otherwise is None or not all(_is_safe_condition(condition, schema) for condition, _ in branches):
                return None
            parts = [_digits(each, schema) for each in (*(then for _, then in branches), otherwise)]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            return _within(max(part.whole for part in known), max(part.scale for part in known), known)
        case _:
            return None


def _digits_of_both(call: Call, left: Expression, right: Expression, schema: PlanSchema) -> _Digits | None:
    one, other = _digits(left, schema), _digits(right, schema)
    if one is None or other is None:
        return None
    if _FLOAT in (one, other):
        return _FLOAT
    is_product = call.function == "multiply"
    whole = one.whole + other.whole + 1 if is_product else max(one.whole, other.whole) + 1
    if _is_integer(left, schema) and _is_integer(right, schema):
        return _Digits(whole) if whole <= _DIGITS_OF_INTEGERS else None
    return _within(whole, one.scale + other.scale if is_product else max(one.scale, other.scale), (one, other))


def _is_safe_condition(condition: Expression, schema: PlanSchema) -> bool:
    """Whether a condition has a value for every row, as comparisons of integers that are computed have."""
    match condition:
        case Call(function="and" | "or" | "not", arguments=arguments):
            return all(_is_safe_condition(each, schema) for each in arguments)
        case Call(function=function, arguments=arguments) if function in _COMPARISONS:
            digits = [_digits(each, schema) if _is_integer(each, schema) else None for each in arguments]
            if all(each is not None and each.whole <= _DIGITS_OF_INTEGERS for each in digits):
                return True
    return cannot_raise(condition, schema)


def _is_integer(expression: Expression, schema: PlanSchema) -> bool:
    match expression:
        case ColumnRef(name=name):
            return schema.column(name).type_text in _INTEGERS
        case Literal(value=value):
            return isinstance(value, int)
        case Cast(type_text=type_text):
            return type_text in _INTEGERS
        case Call(function="add" | "subtract" | "multiply", arguments=(left, right)):
            return _is_integer(left, schema) and _is_integer(right, schema)
        case _:
            return False


def _within(whole: int, scale: int, parts: Iterable[_Digits]) -> _Digits | None:
    """Return the digits of a result, None where its type may hold fewer."""
    most = _WIDE_DIGITS_MAX if any(part.whole + part.scale > _DIGITS_MAX for part in parts) else _DIGITS_MAX
    return _Digits(whole, scale) if whole + scale <= most else None


def _digits_of_type(type_text: str) -> _Digits | None:
    decimal = _DECIMAL.fullmatch(type_text)
    if decimal is not None:
        return _Digits(int(decimal[1]) - int(decimal[2]), int(decimal[2]))
    if type_text in _FLOATS:
        return _FLOAT
    return _Digits(_INTEGERS[type_text]) if type_text in _INTEGERS else None


def _digits_of_cast(cast: Cast, schema: PlanSchema) -> _Digits | None:
    """Return the digits of a column in a type that has all of its values."""
    if not isinstance(cast.operand, ColumnRef):
        return None
    type_text = schema.column(cast.operand.name).type_text
    found, into = _digits_of_type(type_text), _DECIMAL.fullmatch(cast.type_text)
    if found is None or (found == _FLOAT and cast.type_text != "double"):
        return None
    if cast.type_text == "double":
        return _FLOAT if found == _FLOAT or type_text in _SMALL_INTEGERS or cast.widens else None
    if into is not None:
        made = _Digits(int(into[1]) - int(into[2]), int(into[2]))
        return made if made.scale >= found.scale and made.whole >= found.whole else None
    return found if cast.type_text == "int64" and type_text in _SMALL_INTEGERS else None
