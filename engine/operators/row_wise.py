"""Operators that look at one batch at a time: project, filter, limit, identity. They hold nothing between batches.

What project and filter make of a batch, a thread that reads for the task may make ahead (``work_ahead``).

Held by: tests/operators/test_batch_task.py
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.expressions.evaluate import compile_predicate, compile_projection
from engine.expressions.random_numbers import SUBTASK
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.expression import ColumnRef, NamedExpression, columns_of
from engine.graph.function_table import is_deterministic
from engine.graph.operator_descriptor import FilterOperator, LimitOperator, ProjectOperator
from engine.operators.operator import ChainedOperator, Output, TaskContext
from engine.operators.work_ahead import WorkAhead
from engine.records.arrow_batch import batch_bytes
from engine.records.kept_rows import kept_rows
from engine.records.narrow_decimals import is_wide_decimal

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from engine.graph.operator_descriptor import OperatorDescriptor
    from engine.operators.work_ahead import Ahead


class Identity(ChainedOperator):
    """Passes batches on."""

    def open(self, context: TaskContext, output: Output) -> None:
        """Have batches come as the output has them."""
        super().open(context, output)
        self.takes_opened = output.takes_opened

    def process(self, batch: pa.RecordBatch) -> None:
        """Pass the batch to the output."""
        self.output.process(batch)


#: rows of which it is seen how wide they become
_FIRST_ROWS: Final = 1024
#: limit of a piece of a batch that becomes wide
_PIECE_BYTES_MAX: Final = 16 << 20


class Project(ChainedOperator):
    """New columns from expressions.

    A text or a list may be far wider than what it is computed of: a batch of numbers is taken in pieces then, by the
    width of the rows that came out before, the first of them a small one.
    """

    def open(self, context: TaskContext, output: Output) -> None:
        """Compile the expressions over the input's schema."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, ProjectOperator)
        SUBTASK.set(context.descriptor.subtask_index)
        schema = to_arrow_schema(self.descriptor.input_schemas[0])
        self._project = compile_projection(
            operator.expressions, schema, to_arrow_schema(self.descriptor.output_schema), output.compact_columns
        )
        decimals = {field.name for field in schema if is_wide_decimal(field.type)}
        codes = _passed_on(operator.expressions, output.compact_columns) - decimals
        self.compact_columns = codes | self._project.narrow_columns
        self.takes_opened = output.takes_opened
        self._may_widen = any(
            not column.width_is_exact and not isinstance(one.expression, ColumnRef)
            for column, one in zip(self.descriptor.output_schema.columns, operator.expressions, strict=True)
        )
        #: width of the last output rows; 0.0 before the first ones
        self._row_bytes = 0.0
        #: results that other threads have made, where one was asked to
        self._ahead: WorkAhead[pa.RecordBatch] | None = None

    def ahead(self) -> Ahead | None:
        """Return the evaluation of whole batches, as far as they do not become wide; None where nothing is computed."""
        operator, behind = self.descriptor.operator, self.output.ahead()
        assert isinstance(operator, ProjectOperator)
        is_computed = any(not isinstance(one.expression, ColumnRef) for one in operator.expressions)
        if not operator.traits.is_repeatable or not (is_computed or behind):
            return None

        made = self._ahead = self._ahead or WorkAhead()

        def evaluate(batch: pa.RecordBatch) -> None:
            if not self._may_widen or 0 < batch.num_rows * self._row_bytes <= _PIECE_BYTES_MAX:
                made.make(batch, self._project, behind)

        return evaluate

    def say_whole_groups(self) -> None:
        """Pass it on: of a row at most one comes out."""
        self.output.say_whole_groups()

    def process(self, batch: pa.RecordBatch) -> None:
        """Evaluate over the batch."""
        made = None if self._ahead is None else self._ahead.take(batch)
        if made is not None:
            self._pass_on(made)
            return
        if not self._may_widen or batch.num_rows <= _FIRST_ROWS:
            self._pass_on(self._project(batch))
            return
        while batch.num_rows:
            # about equal ones: every operator pays for a piece
            pieces = math.ceil(batch.num_rows * self._row_bytes / _PIECE_BYTES_MAX)
            rows = math.ceil(batch.num_rows / pieces) if pieces else _FIRST_ROWS
            self._pass_on(self._project(batch.slice(0, rows)))
            batch = batch.slice(rows)

    def _pass_on(self, made: pa.RecordBatch) -> None:
        if self._may_widen and made.num_rows:
            self._row_bytes = batch_bytes(made) / made.num_rows
        self.output.process(made)


def _passed_on(expressions: Sequence[NamedExpression], coded: Collection[str]) -> frozenset[str]:
    """Return the columns that become columns of the output as they are, and nothing else that takes no codes."""
    passed = {one.expression.name for one in expressions if one.name in coded and isinstance(one.expression, ColumnRef)}
    needed = {name for one in expressions if one.name not in coded for name in columns_of(one.expression)}
    return frozenset(passed - needed)


class Filter(ChainedOperator):
    """Rows for which the predicate is true."""

    def open(self, context: TaskContext, output: Output) -> None:
        """Compile the predicate over the input's schema."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, FilterOperator)
        self._predicate = compile_predicate(operator.predicate, to_arrow_schema(self.descriptor.input_schemas[0]))
        self.takes_opened = output.takes_opened
        self._ahead: WorkAhead[pa.RecordBatch] | None = None

    def ahead(self) -> Ahead | None:
        """Return the evaluation of whole batches."""
        operator, behind = self.descriptor.operator, self.output.ahead()
        assert isinstance(operator, FilterOperator)
        if not is_deterministic(operator.predicate):
            return None
        made = self._ahead = self._ahead or WorkAhead()
        return lambda batch: made.make(batch, self._kept, behind)

    def _kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return kept_rows(batch, self._predicate.mask(batch))

    def say_whole_groups(self) -> None:
        """Pass it on: of a row at most one comes out."""
        self.output.say_whole_groups()

    def process(self, batch: pa.RecordBatch) -> None:
        """Keep the rows whose predicate is true; null counts as false."""
        kept = None if self._ahead is None else self._ahead.take(batch)
        kept = self._kept(batch) if kept is None else kept
        if kept.num_rows:
            self.output.process(kept)


class Limit(ChainedOperator):
    """The first ``count`` rows of this subtask."""

    def __init__(self, descriptor: OperatorDescriptor) -> None:
        super().__init__(descriptor)
        assert isinstance(descriptor.operator, LimitOperator)
        self._left_count = descriptor.operator.count

    @property
    def is_satisfied(self) -> bool:
        """True once the rows are complete: the source may stop."""
        return self._left_count == 0 or self.output.is_satisfied

    def process(self, batch: pa.RecordBatch) -> None:
        """Pass on what is still missing."""
        taken = batch.slice(0, self._left_count)
        self._left_count -= taken.num_rows
        if taken.num_rows:
            self.output.process(taken)
