"""Arithmetic as Python means it: ``+ - * / // %`` and negation.

    integers     widen to int64; overflow is an error; // and % floor; division by zero is an error
    /            float64, by IEEE (x / 0 is inf or nan)
    floats       float32 with float32 stays, else float64; // and % floor as Python's do
    decimals     exact, within 38 digits (decimal_widths.py); / gives float64, // and % floor
    times        timestamp - timestamp = duration, timestamp + duration = timestamp, as Arrow has them;
                 what moves on the calendar is bound before (calendar_functions.py)
    strings      + joins them

Null with anything is null.

Held by: tests/expressions/test_evaluate.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options, as_array
from engine.expressions.common_type import common_type, is_number
from engine.expressions.decimal_arithmetic import bind_decimals, bind_quotient, bind_remainder
from engine.expressions.decimal_widths import decimal_of
from engine.expressions.float_division import floor_quotients
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.records.plain_types import span_remedy

_INT64 = pa.int64()


def _number_types(left: Operand, right: Operand) -> tuple[pa.DataType, pa.DataType]:
    """Return the types in which two numbers are added, subtracted, multiplied."""
    one, other = left.type, right.type
    if pa.types.is_null(one) and pa.types.is_null(other):
        return _INT64, _INT64
    if pa.types.is_null(one) or pa.types.is_null(other):
        known = other if pa.types.is_null(one) else one
        return (_INT64, _INT64) if pa.types.is_integer(known) else (known, known)
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return _INT64, _INT64
    if pa.types.is_floating(one) or pa.types.is_floating(other):
        both_single = one == other == pa.float32()
        return (one, other) if both_single else (pa.float64(), pa.float64())
    return decimal_of(left), decimal_of(right)


def _is_numeric(data_type: pa.DataType) -> bool:
    return is_number(data_type) or pa.types.is_null(data_type)


def _checked(kernel: Callable[..., Datum]) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of a checked Arrow kernel: add, subtract or multiply."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        left, right = operands
        if not (_is_numeric(left.type) and _is_numeric(right.type)):
            return _bind_other(kernel, left, right)
        types = _number_types(left, right)
        if pa.types.is_decimal(types[0]):
            return bind_decimals(kernel, *types)
        return Binding(kernel, types, can_raise=not pa.types.is_floating(types[0]))

    return bind


def _bind_other(kernel: Callable[..., Datum], left: Operand, right: Operand) -> Binding:
    """Bind + - * for what is not a number: strings join, times move."""
    if pa.types.is_boolean(left.type) or pa.types.is_boolean(right.type):
        raise NoMatchError("bool is not a number; cast it to pa.int64() first")
    strings = common_type(left.type, right.type)
    if kernel is pc.add_checked and strings in (pa.string(), pa.large_string()):
        separator = scalar_of("", strings)
        return Binding(lambda one, other: pc.binary_join_element_wise(one, other, separator), (strings, strings))
    return Binding(kernel, (None, None), can_raise=True)


def _check_divided(operands: Sequence[Operand]) -> None:
    types = [operand.type for operand in operands]
    if not all(map(_is_numeric, types)):
        remedy = span_remedy(*types)
        raise NoMatchError(f"only numbers can be divided{remedy and '; '}{remedy}")


def bind_divide(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind ``/``: float64 whatever the operands."""
    _check_divided(operands)
    return Binding(pc.divide, (pa.float64(), pa.float64()))


def floor_divide_integers(left: Datum, right: Datum) -> Datum:
    """Divide integers as Python's ``//`` does; by 0, and what leaves the type, raises ArrowInvalid."""
    quotient = pc.divide_checked(left, right)
    remainder = pc.subtract(left, pc.multiply(quotient, right))
    opposite = pc.and_(pc.not_equal(remainder, 0), pc.not_equal(pc.less(remainder, 0), pc.less(right, 0)))
    return pc.if_else(opposite, pc.subtract(quotient, 1), quotient)


def _floor_divide_floats(left: Datum, right: Datum) -> Datum:
    """Divide as Python's ``//``, in float64; float32 is rounded from there."""
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _floor_divide_floats(pa.repeat(left, 1), pa.repeat(right, 1))[0]
    count = len(right) if isinstance(left, pa.Scalar) else len(left)
    one, other = (as_array(datum, count) for datum in (left, right))
    wide = [pc.cast(array, pa.float64()) for array in (one, other)]
    found = pc.cast(floor_quotients(*wide), one.type, safe=False)
    if one.null_count or other.null_count:
        return pc.if_else(pc.and_(pc.is_valid(one), pc.is_valid(other)), found, scalar_of(None, one.type))
    return found


def _modulo_integers(left: Datum, right: Datum) -> Datum:
    """Floored remainder; the one pair whose quotient overflows, least int64 and -1, has remainder 0."""
    safe = pc.if_else(pc.equal(right, -1), scalar_of(1, _INT64), right)
    return pc.modulo(left, safe)


def _unsigned_remainder(left: Datum, right: Datum) -> Datum:
    return pc.subtract(left, pc.multiply(pc.divide_checked(left, right), right))


def _flooring(
    whole: Callable[..., Datum],
    integers: Callable[..., Datum],
    floats: Callable[..., Datum],
    of_decimals: Callable[[pa.DataType, pa.DataType], Binding],
) -> Callable[[Sequence[Operand], Options], Binding]:
    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        _check_divided(operands)
        left, right = operands
        if left.type == right.type == pa.uint64():
            return Binding(whole, (left.type, right.type), can_raise=True)
        types = _number_types(left, right)
        if pa.types.is_decimal(types[0]):
            return of_decimals(*types)
        is_integer = pa.types.is_integer(types[0])
        return Binding(integers if is_integer else floats, types, can_raise=is_integer)

    return bind


bind_add = _checked(pc.add_checked)
bind_subtract = _checked(pc.subtract_checked)
bind_multiply = _checked(pc.multiply_checked)
bind_floor_divide = _flooring(pc.divide_checked, floor_divide_integers, _floor_divide_floats, bind_quotient)
bind_modulo = _flooring(_unsigned_remainder, _modulo_integers, pc.modulo, bind_remainder)


def bind_negate(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind unary minus."""
    data_type = operands[0].type
    if pa.types.is_integer(data_type) or pa.types.is_null(data_type):
        return Binding(pc.negate_checked, (_INT64,), can_raise=True)
    if not (is_number(data_type) or pa.types.is_duration(data_type)):
        raise NoMatchError("only numbers and durations can be negated")
    return Binding(pc.negate_checked, (None,))
