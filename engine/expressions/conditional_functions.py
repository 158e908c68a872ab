"""Choices between values: nullif, least, greatest; equality that knows null; a value with a condition that must hold.

Arguments widen to their common type; a constant of ``fill_null`` gets the type of the value, or is an error where it
does not fit. ``least`` and ``greatest`` pass nulls over, as in Spark, DuckDB and Polars, and have the order of
comparisons: NaN is the greatest number (Polars and DuckDB's ``least`` agree).

Held by: tests/expressions/test_conditional_functions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import pyarrow as pa

from engine.expressions.argument_kinds import common
from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options, cast_constant, fill_false
from engine.expressions.comparison import compared_type, comparison_of
from engine.expressions.literals import literal_text
from engine.records.array_fit import fitted
from engine.records.arrow_functions import pc
from engine.records.choices import coalesce, if_else
from engine.records.plain_scalars import scalar_of
from engine.records.value_check import MisfitError


def bind_coalesce(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the first value that is not null."""
    data_type = common(operands)
    return Binding(coalesce, tuple(data_type for _ in operands))


def bind_fill_null(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the value, and another one where it is null: a constant has the type of the value."""
    own_type, constant = operands[0].type, operands[1].constant
    if constant is None or pa.types.is_null(own_type):
        return bind_coalesce(operands, options)
    if not pa.types.is_nested(own_type):
        common(operands)
    try:
        fitted(pa.repeat(constant, 1) if constant.is_valid else pa.nulls(1, constant.type), own_type)
    except MisfitError:
        text = literal_text(constant)
        raise NoMatchError(f"{text} does not fit into {own_type}: cast the column first") from None
    return Binding(coalesce, (own_type, own_type))


def bind_nullif(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the first value, null where it equals the second."""
    left, right = operands
    data_type = compared_type(left, right)
    right_constant = None if right.constant is None else cast_constant(right.constant, data_type)
    equal = comparison_of("equal", data_type, right_constant)
    own_type = left.type
    is_widened = own_type != data_type and not pa.types.is_null(own_type)

    def nullif(value: Datum, other: Datum) -> Datum:
        one = pc.cast(value, data_type, safe=False) if is_widened else value
        return if_else(fill_false(equal(one, other)), scalar_of(None, value.type), value)

    return Binding(nullif, (None if is_widened else data_type, data_type))


def extreme(better: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of the value for which ``better`` holds with all others; nulls are passed over."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = common(operands)
        if pa.types.is_null(data_type) or len(operands) == 1:
            return Binding(coalesce, tuple(data_type for _ in operands))
        compared = pa.float32() if pa.types.is_float16(data_type) else data_type
        is_better = comparison_of(better, compared)

        def chosen(one: Datum, other: Datum) -> Datum:
            return coalesce(if_else(is_better(one, other), one, other), one, other)

        def best(*data: Datum) -> Datum:
            found = reduce(chosen, data)
            return found if found.type == data_type else pc.cast(found, data_type)

        return Binding(best, tuple(compared for _ in operands))

    return bind


def bind_eq_null_safe(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind equality for which null equals null; the result is never null."""
    data_type = compared_type(*operands)
    equal = comparison_of("equal", data_type)

    def same(one: Datum, other: Datum) -> Datum:
        return pc.coalesce(equal(one, other), pc.and_(pc.is_null(one), pc.is_null(other)))

    return Binding(same, (data_type, data_type))


def bind_sql_text(_operands: Sequence[Operand], _options: Options) -> Binding:
    """Refuse an expression that is written in SQL where no data set has read it."""
    raise NoMatchError("expr() stands in select, with_columns, filter and sort; make a column of it first")


def bind_require(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the value itself; a row of which the condition is not true is an error."""
    message = str(options.get("message", "a row does not meet a required condition"))

    def checked(value: Datum, condition: Datum) -> Datum:
        is_met = fill_false(condition)
        if not (is_met.as_py() if isinstance(is_met, pa.Scalar) else pc.all(is_met, min_count=0).as_py()):
            raise pa.ArrowInvalid(message)
        return value

    return Binding(checked, (None, pa.bool_()))
