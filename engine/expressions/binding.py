"""Bindings of functions in expressions: bound operands, and the function's kernel for their types.

    Operand(type, evaluate, constant)    an expression compiled over a schema: evaluate(batch) -> Array or Scalar
    Form(function, operands, options)    what an operand was made of, for native programs
    FunctionEntry(name, arity, bind)     one row of the table in function_registry.py
    bind(operands, options) -> Binding(kernel, argument_types, can_raise)

A function looks at the types of its operands once, says to which types they are to be cast (None: as they are) and
gives the kernel that works on the results. Constants stay scalars: they are cast once, and Arrow broadcasts them.

Held by: tests/expressions/test_evaluate.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

import msgspec
import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

#: pa.Array of the batch's length, or a pa.Scalar that stands for one (pyarrow has no types that mypy knows)
Datum: TypeAlias = Any
#: errors of a kernel about a value; Arrow's text about one that is not UTF-8 cannot be decoded
UNFIT = (pa.ArrowInvalid, pa.ArrowCapacityError, UnicodeDecodeError)
_FALSE = scalar_of(False)
Options = Mapping[str, bool | int | float | str | None]


class NoMatchError(Exception):
    """A function has no meaning for these types; the text says what would help."""


class Form(msgspec.Struct, frozen=True):
    """The form of an operand: a function over operands that have the types it was bound to.

    ``column`` has its position in ``options``; ``widen`` and ``cast`` have one operand; ``case`` has condition and
    value of each branch, then the value of all others.
    """

    function: str
    operands: tuple[Operand, ...] = ()
    options: Options = {}


class Operand(msgspec.Struct, frozen=True):
    """An expression compiled over a schema."""

    type: pa.DataType
    evaluate: Callable[[pa.RecordBatch], Datum]
    #: True if a value (not a type) may make it fail
    can_raise: bool = False
    constant: pa.Scalar | None = None
    #: form for native programs; None: a constant, or an operand that only ``evaluate`` handles
    form: Form | None = None


class Binding(msgspec.Struct, frozen=True):
    """A function bound to operands of certain types; constants at the end may be part of the kernel."""

    kernel: Callable[..., Datum]
    argument_types: tuple[pa.DataType | None, ...]
    can_raise: bool = False


class FunctionEntry(msgspec.Struct, frozen=True):
    """A function by name. ``arity_max`` None: any number of arguments."""

    name: str
    arity_min: int
    arity_max: int | None
    bind: Callable[[Sequence[Operand], Options], Binding]


def as_array(datum: Datum, length: int) -> Any:
    """Return a datum as an array of exactly ``length`` values."""
    if isinstance(datum, pa.Scalar):
        return pa.repeat(datum, length) if datum.is_valid and length else pa.nulls(length, datum.type)
    return datum.combine_chunks() if isinstance(datum, pa.ChunkedArray) else datum


#: largest number up to which all integers are exact floats, and all powers of ten
EXACT_INTEGER: Final = 2**53
EXACT_POWER: Final = 22


def cast_constant(constant: pa.Scalar, target: pa.DataType) -> pa.Scalar:
    """Return a constant of another type. Arrow casts int64 to a decimal of 19 digits or more only: go by the value."""
    if pa.types.is_decimal(target) and pa.types.is_integer(constant.type) and constant.is_valid:
        return scalar_of(Decimal(constant.as_py()), target)
    return _widened(constant, target)


def decimals_as_floats(values: Datum, target: pa.DataType) -> Datum:
    """Return decimals as the nearest floats: 3.00000 is 3.0, of which Arrow makes 3.0000000000000004.

    Arrow multiplies by 1e-5, which no float is. Digits that are a float, divided by 1e5, which is one too, are rounded
    once; so are texts.
    """
    data_type = values.type
    if isinstance(values, pa.Scalar):
        return scalar_of(float(values.as_py()) if values.is_valid else None, target)
    floats = None
    if pa.types.is_decimal128(data_type) and 0 <= data_type.scale <= EXACT_POWER:
        digits = pa.decimal128(data_type.precision, 0)
        whole = pa.Array.from_buffers(digits, len(values), values.buffers(), values.null_count, values.offset)
        floats = pc.cast(whole, pa.float64())
        if 10**data_type.precision > EXACT_INTEGER and (pc.max(pc.abs(floats)).as_py() or 0) > EXACT_INTEGER:
            floats = None
    if floats is None:
        floats = pc.cast(pc.cast(values, pa.string()), pa.float64())
    elif data_type.scale:
        floats = pc.divide(floats, float(10**data_type.scale))
    return floats if target == pa.float64() else pc.cast(floats, target)


def unfit_decimal(value: Decimal, target: pa.DataType) -> pa.ArrowInvalid:
    """Return the error of a decimal that needs more digits than a type has."""
    return pa.ArrowInvalid(f"{value:f} does not fit into {target}: cast to fewer digits before, or to float64")


def cast_decimals(values: Datum, target: pa.DataType) -> Datum:
    """Return decimals of another type; ArrowInvalid shows the value that does not fit, where it is alone."""
    try:
        return pc.cast(values, target)
    except pa.ArrowInvalid as error:
        if not isinstance(values, pa.Scalar) and len(values) != 1:
            raise  # the row will be found, and come alone
        raise unfit_decimal((values if isinstance(values, pa.Scalar) else values[0]).as_py(), target) from error


def _widened(values: Datum, target: pa.DataType) -> Datum:
    """Return values of a wider type, an integer as the nearest float."""
    if pa.types.is_floating(target) and pa.types.is_decimal(values.type):
        return decimals_as_floats(values, target)
    if pa.types.is_decimal(target) and pa.types.is_decimal(values.type):
        return cast_decimals(values, target)
    # Arrow's safe cast calls an integer that no float is equal to out of range.
    return pc.cast(values, target, safe=not pa.types.is_floating(target))


def cast_operand(operand: Operand, target: pa.DataType | None) -> Operand:
    """Return an operand of another type; widening only, so it fails for no value (but see ``_may_not_hold``)."""
    if target is None or operand.type == target:
        return operand
    if operand.constant is not None:
        scalar = cast_constant(operand.constant, target)
        return Operand(target, lambda _batch: scalar, constant=scalar)
    evaluate = operand.evaluate
    can_raise = operand.can_raise or _may_not_hold(operand.type, target)
    return Operand(target, lambda batch: _widened(evaluate(batch), target), can_raise, form=Form("widen", (operand,)))


def _may_not_hold(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a type that values widen to has no room for some: int64 of uint64, decimals of the most digits."""
    if pa.types.is_decimal(source) and pa.types.is_decimal(target):
        return bool(target.precision - target.scale < source.precision - source.scale)
    return bool(pa.types.is_uint64(source) and pa.types.is_int64(target))


def fill_false(condition: Datum) -> Datum:
    """Return a condition with null as false."""
    if isinstance(condition, pa.Scalar):
        return scalar_of(condition.as_py() is True)
    return pc.fill_null(condition, _FALSE) if condition.null_count else condition


def constant_text(operands: Sequence[Operand], index: int, what: str) -> Any:
    """Return the string constant that an operand must be."""
    constant = operands[index].constant
    value = None if constant is None else constant.as_py()
    if not isinstance(value, str):
        raise NoMatchError(f"{what} must be a constant string")
    return value
