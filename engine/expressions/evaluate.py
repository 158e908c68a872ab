"""Evaluation over Arrow batches: compile once over a schema, then call for each batch.

    compile_expression(expression, schema) -> CompiledExpression      (batch) -> Array of exactly len(batch)
    compile_predicate(expression, schema)  -> CompiledExpression      the same, of bools
    compile_projection(named, input, output) -> (batch) -> RecordBatch
    evaluate(expression, batch), project(named, batch, schema)        compile and call at once

A value that makes an expression fail (an overflow, a division by zero, a cast) raises DataError: it names the
expression and shows the first row that fails, found by halving the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from engine.errors import DataError, SchemaError
from engine.expressions.binding import Operand, as_array, cast_operand
from engine.expressions.compile import compile_operand
from engine.expressions.text import expression_text
from engine.graph.expression import Expression, NamedExpression, columns_of
from engine.records.python_values import shown_value

_VALUE_TEXT_MAX = 80
_NEWLINE = "\n"
#: what a kernel raises for a value; Arrow's text of one that is not UTF-8 cannot be decoded
_UNFIT = (pa.ArrowInvalid, UnicodeDecodeError)


class CompiledExpression:
    """An expression bound to a schema; immutable, usable from any thread."""

    def __init__(self, expression: Expression, operand: Operand) -> None:
        self.expression = expression
        self._operand = operand

    @property
    def type(self) -> pa.DataType:
        """Type of the result."""
        return self._operand.type

    @property
    def can_raise(self) -> bool:
        """Whether a value may make it fail."""
        return self._operand.can_raise

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the values for a batch of the schema; DataError when one cannot be computed."""
        try:
            return as_array(self._operand.evaluate(batch), batch.num_rows)
        except _UNFIT as error:
            raise self._data_error(batch, _reason(error)) from error

    def _data_error(self, batch: pa.RecordBatch, reason: str) -> DataError:
        """Return the error with the first row that fails."""
        first, count = 0, batch.num_rows
        while count > 1:
            half = count // 2
            failure = self._failure(batch.slice(first, half))
            if failure is None:
                first, half = first + half, count - half
                failure = self._failure(batch.slice(first, half))
            if failure is None:
                break
            count, reason = half, failure
        text = f"{expression_text(self.expression)}: {reason.partition(_NEWLINE)[0]}"
        if count == 1:
            text += f"; in a row with {describe_values(batch.slice(first, 1), columns_of(self.expression))}"
        return DataError(text)

    def _failure(self, batch: pa.RecordBatch) -> str | None:
        try:
            self._operand.evaluate(batch)
        except _UNFIT as error:
            return _reason(error)
        return None


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return (
            f"{error.object[:_VALUE_TEXT_MAX]!r} is not UTF-8; cast the column to binary, or replace what is not text"
        )
    return str(error)


def describe_values(row: pa.RecordBatch, names: Iterable[str]) -> str:
    """Return ``name=value`` of some columns of a batch of one row, of bounded length."""
    unique = dict.fromkeys(names)
    parts = []
    for name in unique:
        text = repr(shown_value(row.column(name)[0]))
        parts.append(f"{name}={text if len(text) <= _VALUE_TEXT_MAX else text[:_VALUE_TEXT_MAX] + '...'}")
    return ", ".join(parts) or "no columns"


def compile_expression(expression: Expression, schema: pa.Schema) -> CompiledExpression:
    """Return an expression ready for batches of a schema; SchemaError when it has no meaning there."""
    return CompiledExpression(expression, compile_operand(expression, schema))


def compile_predicate(expression: Expression, schema: pa.Schema) -> CompiledExpression:
    """Return a condition ready for batches of a schema; SchemaError when it is not a bool."""
    operand = compile_operand(expression, schema)
    if pa.types.is_null(operand.type):
        operand = cast_operand(operand, pa.bool_())
    if not pa.types.is_boolean(operand.type):
        raise SchemaError(f"{expression_text(expression)} is {operand.type}; a condition must be a bool")
    return CompiledExpression(expression, operand)


def compile_projection(
    named: Sequence[NamedExpression], input_schema: pa.Schema, output_schema: pa.Schema
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return what makes batches of the output schema, column by column, from those of the input schema."""
    compiled = [compile_expression(one.expression, input_schema) for one in named]
    for one, expression, field in zip(named, compiled, output_schema, strict=True):
        if expression.type != field.type:
            raise SchemaError(f"column {one.name!r} is {expression.type}, the output schema says {field.type}")

    def project_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([one(batch) for one in compiled], schema=output_schema)

    return project_batch


def evaluate(expression: Expression, batch: pa.RecordBatch) -> pa.Array:
    """Return the values of an expression over one batch."""
    return compile_expression(expression, batch.schema)(batch)


def project(named: Sequence[NamedExpression], batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return one batch of ``schema`` from expressions over another."""
    return compile_projection(named, batch.schema, schema)(batch)
