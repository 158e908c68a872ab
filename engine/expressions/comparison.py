"""Comparisons, membership and logic with nulls.

Comparisons widen both sides to their common type (a constant integer is narrowed to the column's type instead where
it fits, so that no column is copied). Anything compared with null is null. ``&``, ``|``, ``~`` follow Kleene:
``false & null`` is false, ``true | null`` is true. ``is_in`` is null where SQL's IN is: for a null value, and for a
value that is not found when the list holds a null.

Floats have one order everywhere, that of keys and of sort: NaN equals NaN and is greater than every number, -0.0
equals 0.0. Two columns are compared in one pass of ``float_comparison``; with a constant Arrow's own comparisons do,
where need be the opposite one and its complement:

    x == c, x != c, x < c, x <= c    as by IEEE         x > c, x >= c    not x <= c, not x < c
    x == NaN, x >= NaN               is_nan(x)          x <= NaN         true        x > NaN    false

Held by: tests/expressions/test_evaluate.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pyarrow as pa

from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options, cast_constant
from engine.expressions.common_type import common_type, common_type_of
from engine.expressions.float_comparison import comparison_bits
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_BOOL = pa.bool_()
_SWAPPED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
_OPPOSITE = {"greater": pc.less_equal, "greater_equal": pc.less}
_BY_IEEE: dict[str, Callable[[Datum, Datum], Datum]] = {
    "equal": pc.equal,
    "not_equal": pc.not_equal,
    "less": pc.less,
    "less_equal": pc.less_equal,
}


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
        is_span = pa.types.is_duration(left.type) or pa.types.is_duration(right.type)
        remedy = "compare a duration with timedelta(seconds=1)" if is_span else "cast one side"
        raise NoMatchError(f"they have no common type: {remedy}")
    return _BOOL if pa.types.is_null(data_type) else _ordered_type(data_type)


def _ordered_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type itself, or the one that Arrow's comparisons have in its place."""
    if pa.types.is_decimal(data_type) and data_type.bit_width < 128:
        return pa.decimal128(data_type.precision, data_type.scale)
    return pa.float32() if pa.types.is_float16(data_type) else data_type


def _is_nan(scalar: pa.Scalar) -> bool:
    return bool(scalar.is_valid and math.isnan(scalar.as_py()))


def _compare_with_constant(values: Datum, constant: pa.Scalar, function: str) -> Datum:
    if not _is_nan(constant):
        if function in _OPPOSITE:
            return pc.invert(_OPPOSITE[function](values, constant))
        return _BY_IEEE[function](values, constant)
    is_nan = pc.is_nan(values)
    if function in ("equal", "greater_equal"):
        return is_nan
    if function in ("not_equal", "less"):
        return pc.invert(is_nan)
    everywhere = pc.or_(is_nan, pc.invert(is_nan))
    return everywhere if function == "less_equal" else pc.invert(everywhere)


def _compare_floats(left: Datum, right: Datum, function: str) -> Datum:
    """Compare floats of one type, arrays or constants; null where one of them is."""
    if isinstance(right, pa.Scalar):
        return _compare_with_constant(left, right, function)
    if isinstance(left, pa.Scalar):
        return _compare_with_constant(right, left, _SWAPPED.get(function, function))
    found = comparison_bits(left, right, function)
    if left.null_count or right.null_count:
        return pc.if_else(pc.and_(pc.is_valid(left), pc.is_valid(right)), found, scalar_of(None, _BOOL))
    return found


def comparison_of(
    function: str, data_type: pa.DataType, constant: pa.Scalar | None = None
) -> Callable[[Datum, Datum], Datum]:
    """Return the kernel that compares two operands of a type: ``equal`` to ``greater_equal``.

    constant: the right operand, where it is one.
    """
    if pa.types.is_floating(data_type):
        if constant is not None and function in _BY_IEEE and not _is_nan(constant):
            return _BY_IEEE[function]
        return lambda left, right: _compare_floats(left, right, function)
    return getattr(pc, function)  # type: ignore[no-any-return]


def comparing(function: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of a comparison."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = compared_type(*operands)
        right = operands[1].constant
        constant = None if right is None else cast_constant(right, data_type)
        return Binding(comparison_of(function, data_type, constant), (data_type, data_type))

    return bind


def bind_between(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind ``lower <= value <= upper``."""
    data_type = common_type_of([operand.type for operand in operands])
    if data_type is None:
        raise NoMatchError("they have no common type: cast the bounds")
    data_type = _ordered_type(data_type)
    at_least, at_most = comparison_of("greater_equal", data_type), comparison_of("less_equal", data_type)

    def between(value: Datum, lower: Datum, upper: Datum) -> Datum:
        return pc.and_kleene(at_least(value, lower), at_most(value, upper))

    return Binding(between, (data_type,) * 3)


def _finding(choices: Sequence[pa.Scalar], data_type: pa.DataType) -> Callable[[Datum], Datum]:
    """Return a kernel that finds values among choices; false for null."""
    if not pa.types.is_floating(data_type):
        value_set = _array_of(choices, data_type)
        return lambda datum: pc.is_in(datum, value_set=value_set)
    # Arrow looks values up by their bits: there are two zeros, and many NaNs.
    zeros = [scalar_of(zero, data_type) for zero in (0.0, -0.0)]
    numbers = [choice for choice in choices if not _is_nan(choice)]
    has_zero = any(choice.as_py() == 0 for choice in numbers)
    value_set = _array_of([*numbers, *zeros] if has_zero else numbers, data_type)
    if len(numbers) == len(choices):
        return lambda datum: pc.is_in(datum, value_set=value_set)
    return lambda datum: pc.or_kleene(pc.is_in(datum, value_set=value_set), pc.is_nan(datum))


def _array_of(scalars: Sequence[pa.Scalar], data_type: pa.DataType) -> pa.Array:
    """Return valid scalars of a type as an array; their Python values may be less exact, or none at all."""
    return pa.concat_arrays([pa.repeat(one, 1) for one in scalars]) if scalars else pa.nulls(0, data_type)


def bind_is_in(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind membership of the first operand in the constants that follow."""
    choices = operands[1:]
    if any(choice.constant is None for choice in choices):
        raise NoMatchError("the list of is_in holds constants only; compare with == and | instead")
    data_type = common_type_of([operand.type for operand in operands])
    if data_type is None:
        raise NoMatchError("they have no common type: cast the column or the values")
    data_type = _ordered_type(data_type)
    constants = [choice.constant for choice in choices if choice.constant is not None]
    valid = [
        constant if constant.type == data_type else cast_constant(constant, data_type)
        for constant in constants
        if constant.is_valid
    ]
    misses_are_null = len(valid) < len(constants)
    find = _finding(valid, data_type)

    def is_in(datum: Datum) -> Datum:
        found = find(datum)
        known = pc.and_(pc.is_valid(datum), found) if misses_are_null else pc.is_valid(datum)
        return pc.if_else(known, found, scalar_of(None, _BOOL))

    return Binding(is_in, (data_type,))


def logical(name: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of a function of Arrow's over bools."""
    kernel = getattr(pc, name)

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        for operand in operands:
            if not (pa.types.is_boolean(operand.type) or pa.types.is_null(operand.type)):
                raise NoMatchError("& | ~ work on bools; put comparisons in parentheses: (a > 1) & (b < 2)")
        return Binding(kernel, tuple(_BOOL for _ in operands))

    return bind
