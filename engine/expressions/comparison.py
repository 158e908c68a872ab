"""Comparisons, membership and logic with nulls.

Comparisons widen both sides to their common type (a constant integer is narrowed to the column's type instead where
it fits, so that no column is copied). Anything compared with null is null. ``&``, ``|``, ``~`` follow Kleene:
``false & null`` is false, ``true | null`` is true. ``is_in`` is null where SQL's IN is: for a null value, and for a
value that is not found when the list holds a null. Floats compare by IEEE: nan is equal to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options
from engine.expressions.common_type import common_type, common_type_of
from engine.records.arrow_functions import pc

_BOOL = pa.bool_()


def _narrowed(operand: Operand, constant: pa.Scalar) -> pa.DataType | None:
    """Return the operand's type when the constant can be compared in it without loss."""
    if not (pa.types.is_integer(operand.type) and pa.types.is_integer(constant.type)):
        return None
    try:
        pc.cast(constant, operand.type)
    except pa.ArrowInvalid:
        return None
    return operand.type


def compared_type(left: Operand, right: Operand) -> pa.DataType:
    """Return the type in which two operands are compared."""
    narrow = None
    if right.constant is not None:
        narrow = _narrowed(left, right.constant)
    elif left.constant is not None:
        narrow = _narrowed(right, left.constant)
    data_type = narrow or common_type(left.type, right.type)
    if data_type is None:
        raise NoMatchError("they have no common type: cast one side")
    return _BOOL if pa.types.is_null(data_type) else data_type


def comparing(kernel: Callable[..., Datum]) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of a comparison."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = compared_type(*operands)
        return Binding(kernel, (data_type, data_type))

    return bind


def bind_between(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind ``lower <= value <= upper``."""
    data_type = common_type_of([operand.type for operand in operands])
    if data_type is None:
        raise NoMatchError("they have no common type: cast the bounds")

    def between(value: Datum, lower: Datum, upper: Datum) -> Datum:
        return pc.and_kleene(pc.greater_equal(value, lower), pc.less_equal(value, upper))

    return Binding(between, (data_type,) * 3)


def bind_is_in(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind membership of the first operand in the constants that follow."""
    choices = operands[1:]
    if any(choice.constant is None for choice in choices):
        raise NoMatchError("the list of is_in holds constants only; compare with == and | instead")
    data_type = common_type_of([operand.type for operand in operands])
    if data_type is None:
        raise NoMatchError("they have no common type: cast the column or the values")
    constants = [choice.constant for choice in choices if choice.constant is not None]
    valid = [pc.cast(constant, data_type).as_py() for constant in constants if constant.is_valid]
    value_set = pa.array(valid, data_type)
    misses_are_null = len(valid) < len(constants)

    def is_in(datum: Datum, *_choices: Datum) -> Datum:
        found = pc.is_in(datum, value_set=value_set)
        known = pc.and_(pc.is_valid(datum), found) if misses_are_null else pc.is_valid(datum)
        return pc.if_else(known, found, pa.scalar(None, _BOOL))

    return Binding(is_in, (data_type, *(None for _ in choices)))


def logical(kernel: Callable[..., Datum]) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of a function over bools."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        for operand in operands:
            if not (pa.types.is_boolean(operand.type) or pa.types.is_null(operand.type)):
                raise NoMatchError("& | ~ work on bools; put comparisons in parentheses: (a > 1) & (b < 2)")
        return Binding(kernel, tuple(_BOOL for _ in operands))

    return bind


def any_type(kernel: Callable[..., Datum]) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of a function that takes every type."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        return Binding(kernel, tuple(None for _ in operands))

    return bind


def bind_coalesce(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the first value that is not null."""
    data_type = common_type_of([operand.type for operand in operands])
    if data_type is None:
        raise NoMatchError("they have no common type: cast some of them")
    return Binding(pc.coalesce, tuple(data_type for _ in operands))
