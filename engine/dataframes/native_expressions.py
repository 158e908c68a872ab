"""Expressions as columns of Spark: a row of the table where Spark can be made to follow us, else None.

    native_column(expression, schema, columns) -> Column | None

What has no row, or not for these types, is computed by the engine itself in a fragment: nothing is approximated. Spark
runs with ANSI errors, UTC and names that differ by case (``session``), so that casts and sums that overflow fail.

    add subtract multiply   integers, decimals and doubles: see ``native_numbers``
    divide                  as doubles
    comparisons             of equal types, and of integers, doubles or decimals among themselves; NaN is equal to
                            itself and the largest for Spark as for us
    and or not, when        three-valued in both
    coalesce, fill_null     of one type; abs of doubles and decimals
    cast                    to a wider integer, of an integer of 32 bits or a decimal to double
    texts                   starts_with, ends_with, contains, length in characters, LIKE, slices from the front, and
                            patterns that mean the same to Java; equal bytes for case and Unicode versions are not
                            sure, so upper and lower are the engine's
    dates                   year, month, day of dates and of times in UTC

Held by: tests/dataframes/test_native_expressions.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.types as kinds
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as T  # noqa: N812 - the usual name

from engine.dataframes.carried_types import is_plain, is_text
from engine.dataframes.native_numbers import (
    NotNative,
    Typed,
    all_are,
    arithmetic,
    as_double,
    comparable,
    divided,
    is_known,
    spark_type,
    typed_literals,
)
from engine.dataframes.native_texts import java_pattern
from engine.errors import SchemaError
from engine.expressions.infer import infer_type, with_typed_texts
from engine.expressions.literals import literal_scalar
from engine.expressions.schema_bridge import type_from_ipc
from engine.graph.expression import Call, Case, Cast, ColumnRef, Expression, Literal

#: types that Spark's literals have by themselves, unless they are null
_LITERALS: Final = frozenset({pa.bool_(), pa.string(), pa.date32(), pa.float64()})
#: length that stands for the end of a text
_TO_END: Final = 2**31 - 1


def native_column(expression: Expression, schema: pa.Schema, columns: Mapping[str, Column]) -> Column | None:
    """Return the column that Spark computes for an expression; None where results would differ for some values.

    columns: what carries each column of the schema.
    """
    try:
        expected = infer_type(expression, schema)
        column, made = _translated(with_typed_texts(expression, schema), schema, columns)
    except (NotNative, SchemaError):
        return None
    if isinstance(expression, ColumnRef):
        return column
    return column if made == expected and is_known(expected) else None


def _translated(expression: Expression, schema: pa.Schema, columns: Mapping[str, Column]) -> Typed:
    match expression:
        case ColumnRef(name=name):
            data_type = schema.field(name).type
            return columns[name], pa.string() if is_text(data_type) else data_type
        case Literal():
            return _literal(expression)
        case Cast(operand=operand, type_ipc=type_ipc):
            return _cast(_translated(operand, schema, columns), type_from_ipc(type_ipc))
        case Case():
            return _case(expression, schema, columns)
        case Call(function="is_in", arguments=(tested, *values)) if all(isinstance(each, Literal) for each in values):
            return _is_in(
                _translated(tested, schema, columns), [_literal(each) for each in values if isinstance(each, Literal)]
            )
        case Call(function=function, arguments=arguments, options=options) if function in _CALLS and not any(
            options.values()
        ):
            operands = [_known(_translated(each, schema, columns)) for each in arguments]
            return _CALLS[function](typed_literals(arguments, operands, are_doubles=function == "divide"))
        case Call(function="str_slice", arguments=(value,), options=options):
            return _slice(_translated(value, schema, columns), options.get("start"), options.get("stop"))
        case Call(function=("str_contains" | "str_matches" | "str_like") as function, arguments=(value, pattern)) if (
            isinstance(pattern, Literal) and isinstance(pattern.value, str)
        ):
            return _matches(function, _translated(value, schema, columns), pattern.value)
    raise NotNative


def _known(typed: Typed) -> Typed:
    if not is_known(typed[1]):
        raise NotNative
    return typed


def _literal(literal: Literal) -> Typed:
    scalar = literal_scalar(literal)
    if not is_plain(scalar.type) or kinds.is_binary(scalar.type) or kinds.is_timestamp(scalar.type):
        raise NotNative
    column = F.lit(scalar.as_py())
    has_type = scalar.is_valid and scalar.type in _LITERALS
    return column if has_type else column.cast(spark_type(scalar.type)), scalar.type


def _cast(operand: Typed, target: pa.DataType) -> Typed:
    column, source = _known(operand)
    is_wider = kinds.is_signed_integer(source) and kinds.is_signed_integer(target)
    is_wider = is_wider and target.bit_width >= source.bit_width
    is_exact = kinds.is_signed_integer(source) and source.bit_width <= 32 and kinds.is_float64(target)
    if source == target or is_wider or is_exact or (kinds.is_float32(source) and kinds.is_float64(target)):
        return column.cast(spark_type(target)), target
    if kinds.is_decimal(source) and kinds.is_float64(target):
        return as_double((column, source)), target
    raise NotNative


def _slice(operand: Typed, start: object, stop: object) -> Typed:
    column, data_type = operand
    first = start or 0
    if not kinds.is_string(data_type) or not isinstance(first, int) or not isinstance(stop, int | None) or first < 0:
        raise NotNative
    if (stop is not None and stop < 0) or max(first, stop or 0) >= _TO_END:
        raise NotNative
    return F.substring(column, first + 1, _TO_END if stop is None else max(0, stop - first)), pa.string()


def _matches(function: str, operand: Typed, pattern: str) -> Typed:
    column, data_type = operand
    if not kinds.is_string(data_type):
        raise NotNative
    if function == "str_like":
        if "\\" in pattern:
            raise NotNative
        return column.like(pattern), pa.bool_()
    known = java_pattern(pattern)
    if known is None:
        raise NotNative
    return column.rlike(known), pa.bool_()


def _case(case: Case, schema: pa.Schema, columns: Mapping[str, Column]) -> Typed:
    data_type = infer_type(case, schema)
    if not is_known(data_type):
        raise NotNative
    column: Column | None = None
    for condition, value in case.branches:
        test, kind = _translated(condition, schema, columns)
        if kind != pa.bool_():
            raise NotNative
        then = _widened(_translated(value, schema, columns), data_type)
        column = F.when(test, then) if column is None else column.when(test, then)
    assert column is not None, "a case without branches"
    if case.otherwise is not None:
        column = column.otherwise(_widened(_translated(case.otherwise, schema, columns), data_type))
    return column, data_type


def _widened(value: Typed, data_type: pa.DataType) -> Column:
    """Return a value as a wider type of its kind."""
    column, own = value
    is_wider = kinds.is_decimal(own) and kinds.is_decimal(data_type)
    if is_wider and own.scale <= data_type.scale and own.precision - own.scale <= data_type.precision - data_type.scale:
        return column.cast(spark_type(data_type))
    return _cast(value, data_type)[0]


def _is_in(tested: Typed, values: Sequence[Typed]) -> Typed:
    column, data_type = tested
    is_of_integers = all_are(kinds.is_signed_integer, [tested, *values])
    is_of_one_type = all_are(lambda each: each == data_type, values) and not kinds.is_floating(data_type)
    if not values or not (is_of_integers or is_of_one_type):
        raise NotNative
    return column.isin([value for value, _ in values]), pa.bool_()


def _comparison(of: Callable[[Column, Column], Column]) -> Callable[[Sequence[Typed]], Typed]:
    def translated(operands: Sequence[Typed]) -> Typed:
        return of(*comparable(operands)), pa.bool_()

    return translated


def _between(operands: Sequence[Typed]) -> Typed:
    value, low, high = comparable(operands)
    return (value >= low) & (value <= high), pa.bool_()


def _logical(of: Callable[..., Column]) -> Callable[[Sequence[Typed]], Typed]:
    def translated(operands: Sequence[Typed]) -> Typed:
        if not all_are(kinds.is_boolean, operands):
            raise NotNative
        return of(*(column for column, _ in operands)), pa.bool_()

    return translated


def _coalesced(operands: Sequence[Typed]) -> Typed:
    first = operands[0][1]
    if not all_are(lambda each: each == first, operands):
        raise NotNative
    return F.coalesce(*(column for column, _ in operands)), first


def _size(operands: Sequence[Typed]) -> Typed:
    ((column, data_type),) = operands
    if not kinds.is_floating(data_type) and not kinds.is_decimal(data_type):
        raise NotNative
    return F.abs(column), data_type


def _of_text(of: Callable[..., Column], result: pa.DataType) -> Callable[[Sequence[Typed]], Typed]:
    def translated(operands: Sequence[Typed]) -> Typed:
        if not all_are(kinds.is_string, operands):
            raise NotNative
        return of(*(column for column, _ in operands)).cast(spark_type(result)), result

    return translated


def _of_date(of: Callable[[Column], Column]) -> Callable[[Sequence[Typed]], Typed]:
    def translated(operands: Sequence[Typed]) -> Typed:
        if not all_are(kinds.is_date32, operands):
            raise NotNative
        return of(operands[0][0]).cast(T.LongType()), pa.int64()

    return translated


_CALLS: Final[Mapping[str, Callable[[Sequence[Typed]], Typed]]] = {
    "add": arithmetic(lambda left, right: left + right),
    "subtract": arithmetic(lambda left, right: left - right),
    "multiply": arithmetic(lambda left, right: left * right, is_product=True),
    "divide": divided,
    "equal": _comparison(lambda left, right: left == right),
    "not_equal": _comparison(lambda left, right: left != right),
    "less": _comparison(lambda left, right: left < right),
    "less_equal": _comparison(lambda left, right: left <= right),
    "greater": _comparison(lambda left, right: left > right),
    "greater_equal": _comparison(lambda left, right: left >= right),
    "eq_null_safe": _comparison(lambda left, right: left.eqNullSafe(right)),
    "between": _between,
    "and": _logical(lambda left, right: left & right),
    "or": _logical(lambda left, right: left | right),
    "not": _logical(lambda value: ~value),
    "coalesce": _coalesced,
    "fill_null": _coalesced,
    "abs": _size,
    "is_null": lambda operands: (operands[0][0].isNull(), pa.bool_()),
    "is_not_null": lambda operands: (operands[0][0].isNotNull(), pa.bool_()),
    "str_starts_with": _of_text(F.startswith, pa.bool_()),
    "str_ends_with": _of_text(F.endswith, pa.bool_()),
    "str_contains": _of_text(F.contains, pa.bool_()),
    "str_length": _of_text(F.char_length, pa.int64()),
    "dt_year": _of_date(F.year),
    "dt_month": _of_date(F.month),
    "dt_day": _of_date(F.day),
}
