"""Durations multiplied and divided; all else is arithmetic of numbers.

    span * number, span / number     a span: rounded to its unit, halves down, as the mean of spans is
    span // number, span % other     rounded down; what remains, of two spans
    span / other, span // other      how many times: float64, int64
    abs(span)

By an integer and by a span all is exact, by a float or a decimal in float64. Of two units the finer one counts. A
quotient by 0 is an error, but for span / other, which is one of floats.

Held by: tests/integration/test_durations.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.argument_kinds import number
from engine.expressions.arithmetic import (
    bind_divide,
    bind_floor_divide,
    bind_modulo,
    bind_multiply,
    floor_divide_integers,
)
from engine.expressions.binding import Binding, Datum, Operand, Options
from engine.expressions.common_type import common_type, is_number
from engine.records.arrow_functions import pc

_INT64: Final = pa.int64()
_FLOAT64: Final = pa.float64()
_OF_NUMBERS: Final = {"*": bind_multiply, "/": bind_divide, "//": bind_floor_divide, "%": bind_modulo}


def spanning(sign: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of ``*``, ``/``, ``//`` or ``%``."""

    def bind(operands: Sequence[Operand], options: Options) -> Binding:
        left, right = (operand.type for operand in operands)
        found = None
        if pa.types.is_duration(left):
            found = _of_two(sign, left, right) if pa.types.is_duration(right) else _by_number(sign, left, right)
        elif pa.types.is_duration(right) and sign == "*":
            turned = _by_number(sign, right, left)
            found = turned and Binding(lambda one, other: turned.kernel(other, one), turned.argument_types[::-1], True)
        return found or _OF_NUMBERS[sign](operands, options)

    return bind


def bind_abs(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the value without its sign, of numbers and durations."""
    data_type = operands[0].type
    if pa.types.is_duration(data_type):
        return Binding(lambda span: pc.cast(pc.abs_checked(_ticks(span)), data_type), (None,), can_raise=True)
    return Binding(pc.abs_checked, (number(data_type),), can_raise=True)


def _by_number(sign: str, span: pa.DataType, other: pa.DataType) -> Binding | None:
    is_exact = pa.types.is_integer(other) or pa.types.is_null(other)
    kernel = (_BY_INTEGERS if is_exact else _BY_FLOATS).get(sign)
    if kernel is None or not (is_exact or is_number(other)):
        return None
    of_ticks = kernel
    types = (None, _INT64 if is_exact else _FLOAT64)
    return Binding(lambda one, by: pc.cast(of_ticks(_ticks(one), by), span), types, can_raise=True)


def _of_two(sign: str, left: pa.DataType, right: pa.DataType) -> Binding | None:
    unit = common_type(left, right)
    if sign == "/":
        return Binding(lambda one, other: pc.divide(*map(_as_float, (one, other))), (unit, unit))
    if sign == "//":
        return Binding(lambda one, other: floor_divide_integers(_ticks(one), _ticks(other)), (unit, unit), True)
    if sign == "%":
        return Binding(lambda one, other: pc.cast(_rest(_ticks(one), _ticks(other)), unit), (unit, unit), True)
    return None


def _ticks(span: Datum) -> Datum:
    return pc.cast(span, _INT64)


def _as_float(span: Datum) -> Datum:
    return pc.cast(_ticks(span), _FLOAT64, safe=False)


def _rest(ticks: Datum, by: Datum) -> Datum:
    return pc.subtract(ticks, pc.multiply(floor_divide_integers(ticks, by), by))


def _nearest(ticks: Datum, by: Datum) -> Datum:
    """Return the integer that is nearest to a quotient, the lower one of two."""
    rest, whole = pc.abs(_rest(ticks, by)), pc.abs(by)
    is_above = pc.greater(rest, pc.subtract(whole, rest))
    return pc.add(floor_divide_integers(ticks, by), pc.cast(is_above, _INT64))


def _by_float(kernel: Callable[..., Datum], mode: str) -> Callable[[Datum, Datum], Datum]:
    def rounded(ticks: Datum, by: Datum) -> Datum:
        found = kernel(pc.cast(ticks, _FLOAT64, safe=False), by)
        return pc.cast(pc.round(found, round_mode=mode), _INT64)

    return rounded


_BY_INTEGERS: Final = {"*": pc.multiply_checked, "/": _nearest, "//": floor_divide_integers}
_BY_FLOATS: Final = {
    "*": _by_float(pc.multiply, "half_down"),
    "/": _by_float(pc.divide, "half_down"),
    "//": _by_float(pc.divide, "down"),
}
