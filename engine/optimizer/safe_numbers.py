"""Which arguments of aggregates have a value for every row, and which of their sums cannot overflow.

    is_safe_call(call, argument type, schema) -> whether rows that nobody asked for may be aggregated too

Decimals are exact and grow, into 76 digits where 38 are not enough; floats and quotients have infinities; so only
integers overflow, which are added up in 64 bits. Columns of up to 32 bits may be: there are not so many rows.

Held by: tests/optimizer/test_aggregate_pushdown.py
"""

from __future__ import annotations

import re
from typing import Final

from engine.graph.expression import AggregateCall, Call, Case, Cast, ColumnRef, Expression, Literal
from engine.graph.plan_schema import PlanSchema
from engine.optimizer.expression_rewriting import cannot_raise

#: decimal digits of integers that cannot overflow when they are added up
_SMALL_INTEGERS: Final = {"int8": 3, "uint8": 3, "int16": 5, "uint16": 5, "int32": 10, "uint32": 10}
_INTEGERS: Final = {**_SMALL_INTEGERS, "int64": 19, "uint64": 20}
_FLOATS: Final = ("halffloat", "float", "double")
_DECIMAL: Final = re.compile(r"decimal(?:32|64|128|256)\((\d+), (-?\d+)\)")
#: that fit into the widest decimals; those that sums of so many rows add
_DIGITS_MAX: Final = 76
_DIGITS_OF_ROWS: Final = 12
#: digits of a float, which has any number of them
_FLOAT: Final = 0


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
        widest = _DIGITS_MAX if argument_type.startswith("decimal256") else _DIGITS_MAX // 2
        return int(decimal[1]) + _DIGITS_OF_ROWS <= widest
    return argument_type in (*_FLOATS, *_SMALL_INTEGERS) or _is_small(call.argument, schema)


def _is_small(expression: Expression, schema: PlanSchema) -> bool:
    """Whether an integer is a narrow column in a wide type."""
    match expression:
        case Cast(operand=ColumnRef(name=name)) | ColumnRef(name=name):
            return schema.column(name).type_text in _SMALL_INTEGERS
        case _:
            return False


def _digits(expression: Expression, schema: PlanSchema) -> int | None:
    """Return how many digits a number may have that every row has, _FLOAT for a float; None for anything else."""
    match expression:
        case ColumnRef(name=name):
            return _digits_of_type(schema.column(name).type_text)
        case Literal(value=bool() | str()):
            return None
        case Literal(value=float()):
            return _FLOAT
        case Literal(value=None | int(), text=text):
            return len(text) if re.fullmatch(r"-?[\d.]+", text) else None
        case Cast():
            return _digits_of_cast(expression, schema)
        case Call(function="divide", arguments=arguments):
            return None if None in (_digits(each, schema) for each in arguments) else _FLOAT
        case Call(function="add" | "subtract" | "multiply", arguments=(left, right)):
            return _digits_of_both(left, right, schema)
        case Case(branches=branches, otherwise=otherwise):
            if otherwise is None or not all(cannot_raise(condition, schema) for condition, _ in branches):
                return None
            parts = [_digits(each, schema) for each in (*(then for _, then in branches), otherwise)]
            # of all kinds the widest, with as many digits behind the point as any has
            return None if None in parts else _within(sum(part for part in parts if part is not None))
        case _:
            return None


def _digits_of_both(left: Expression, right: Expression, schema: PlanSchema) -> int | None:
    one, other = _digits(left, schema), _digits(right, schema)
    if one is None or other is None or (_is_integer(left, schema) and _is_integer(right, schema)):
        return None
    return _FLOAT if _FLOAT in (one, other) else _within(one + other + 1)


def _is_integer(expression: Expression, schema: PlanSchema) -> bool:
    match expression:
        case ColumnRef(name=name):
            return schema.column(name).type_text in _INTEGERS
        case Literal(value=value):
            return isinstance(value, int)
        case Cast(type_text=type_text):
            return type_text in _INTEGERS
        case _:
            return False


def _within(digits: int) -> int | None:
    return digits if digits <= _DIGITS_MAX else None


def _digits_of_type(type_text: str) -> int | None:
    decimal = _DECIMAL.fullmatch(type_text)
    if decimal is not None:
        return int(decimal[1])
    return _FLOAT if type_text in _FLOATS else _INTEGERS.get(type_text)


def _digits_of_cast(cast: Cast, schema: PlanSchema) -> int | None:
    """Return the digits of a column in a type that has all of its values."""
    if not isinstance(cast.operand, ColumnRef):
        return None
    type_text = schema.column(cast.operand.name).type_text
    digits, source, into = _digits_of_type(type_text), _DECIMAL.fullmatch(type_text), _DECIMAL.fullmatch(cast.type_text)
    if digits is None or (digits == _FLOAT and cast.type_text != "double"):
        return None
    if cast.type_text == "double":
        return _FLOAT if digits == _FLOAT or type_text in _SMALL_INTEGERS or cast.widens else None
    if into is not None:
        behind = 0 if source is None else int(source[2])
        fits = int(into[2]) >= behind and int(into[1]) - int(into[2]) >= digits - behind
        return int(into[1]) if fits else None
    return digits if cast.type_text == "int64" and type_text in _SMALL_INTEGERS else None
