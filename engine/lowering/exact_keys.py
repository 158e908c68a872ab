"""Keys of two types, compared exactly: the type in which both are compared, and the values in it.

    types of both sides                    compared as
    equal                                  that type
    integers, decimals                     the type that holds both (``common_type``)
    64-bit integers beside floats          the integers; a float that is no such integer equals none of them
    decimals of up to 15 digits, floats    float64, in which each of these decimals has a value of its own
    wider decimals, floats                 refused: distinct decimals are one float
    dates, timestamps, durations           the finer unit; a value beyond its range equals none of the other side

A value without an equal on the other side is null in the compared type. That is right for an equality alone:
comparisons by order, and NOT IN, which takes a null for unknown, need a value for each (``is_total``).

``as_equals_compares``: keys that stand for ``==``, of IN and of SQL; numbers beside floats go as float64 there.

Held by: tests/integration/test_keys_of_two_types.py
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.common_type import common_type
from engine.expressions.literals import make_literal
from engine.expressions.schema_bridge import type_to_ipc
from engine.graph.expression import Call, Cast, Expression
from engine.records.key_types import is_key_type, key_remedy

#: number of digits up to which each decimal has a float64 of its own
FLOAT_DIGITS: Final = 15
_FINE_UNITS: Final = ("us", "ns")


def compared_type(left: pa.Field, right: pa.Field, *, is_total: bool, call: str = "join") -> pa.DataType:
    """Return the type in which two key columns are compared; SchemaError if they cannot be compared exactly."""
    for field in (left, right):
        if not is_key_type(field.type):
            raise SchemaError(
                f"{call}: column {field.name!r} is {field.type}, which cannot be a key: {key_remedy(field.type)}"
            )
    wanted = common_type(left.type, right.type)
    both = f"{call}: {left.name!r} is {left.type} left, {right.name!r} is {right.type} right"
    if wanted is None:
        raise SchemaError(f"{both}; they have no common type: cast one of them")
    if not pa.types.is_floating(wanted):
        return wanted
    exact, floating = (left, right) if pa.types.is_floating(right.type) else (right, left)
    if pa.types.is_decimal(exact.type) and exact.type.precision > FLOAT_DIGITS:
        raise SchemaError(
            f"{both}; many decimals of more than {FLOAT_DIGITS} digits are one float: cast {exact.name!r} to float, or"
            f" {floating.name!r} to {exact.type}"
        )
    if not _is_wide_integer(exact.type):
        return wanted
    if is_total:
        raise SchemaError(
            f"{both}; many integers beyond 2^53 are one float: cast {exact.name!r} to float, or {floating.name!r} to"
            f" {exact.type}"
        )
    return exact.type


def check_shared(left: pa.Field, right: pa.Field) -> None:
    """Raise SchemaError if no column can have the keys of both sides of a full join with ``on=``."""
    types = (left.type, right.type)
    if any(map(_is_wide_integer, types)) and any(map(pa.types.is_floating, types)):
        raise SchemaError(
            f"join how='full' on={left.name!r}: it is {left.type} left, {right.type} right, and one column cannot have "
            "both exactly: cast one of them, or give left_on= and right_on=, which keep both"
        )


def _is_wide_integer(data_type: pa.DataType) -> bool:
    """Return whether a type has integers that are no float64."""
    return bool(pa.types.is_integer(data_type) and data_type.bit_width == 64)


def compared_value(key: Expression, own: pa.DataType, wanted: pa.DataType, *, is_total: bool) -> Expression:
    """Return a key in the type in which it is compared, null where it can have no equal there."""
    if own == wanted:
        return key
    if not is_total and (_narrows(own, wanted) or _may_overflow(own, wanted)):
        return Call("try_cast", (key, make_literal(None, wanted)))
    return Cast(key, type_to_ipc(wanted), str(wanted), widens=True)


def as_equals_compares(
    left: tuple[Expression, pa.DataType], right: tuple[Expression, pa.DataType]
) -> tuple[Expression, Expression] | None:
    """Return two values, given with their types, in the type in which ``==`` compares them; None if there is none."""
    wanted = common_type(left[1], right[1])
    if wanted is None:
        return None
    one, other = (compared_value(value, own, wanted, is_total=True) for value, own in (left, right))
    return one, other


def _narrows(own: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(pa.types.is_floating(own) and pa.types.is_integer(wanted))


def _may_overflow(own: pa.DataType, wanted: pa.DataType) -> bool:
    if not (pa.types.is_timestamp(wanted) or pa.types.is_duration(wanted)) or wanted.unit not in _FINE_UNITS:
        return False
    return bool(pa.types.is_date(own) or own.unit != wanted.unit)
