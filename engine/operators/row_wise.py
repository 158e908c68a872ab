"""Operators that look at one batch at a time: project, filter, limit, identity. They hold nothing between batches.

What project and filter make of a batch, a thread that reads for the task may make ahead (``work_ahead``).

Held by: tests/operators/test_batch_task.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from engine.expressions.evaluate import compile_predicate, compile_projection
from engine.expressions.random_numbers import SUBTASK
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.expression import ColumnRef, NamedExpression, columns_of
from engine.graph.function_table import is_deterministic
from engine.graph.operator_descriptor import FilterOperator, LimitOperator, ProjectOperator
from engine.operators.chain_link import RowMapper
from engine.operators.operator import ChainedOperator, Output, TaskContext
from engine.operators.work_ahead import WorkAhead
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


class Project(RowMapper, ChainedOperator):
    """New columns from expressions.

    A text or a list may be far wider than what it is computed of: a batch of numbers is taken in pieces then.
    """

    def open(self, context: TaskContext, output: Output) -> None:
        """Compile the expressions over the input's schema."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, ProjectOperator)
        SUBTASK.set(context.descriptor.subtask_index)
        schema = to_arrow_schema(self.descriptor.input_schemas[0])
        self.make = project = compile_projection(
            operator.expressions, schema, to_arrow_schema(self.descriptor.output_schema), output.compact_columns
        )
        codes = _passed_on(operator.expressions, output.compact_columns)
        codes = frozenset(name for name in codes if not is_wide_decimal(schema.field(name).type))
        self.compact_columns = codes | project.narrow_columns
        self.takes_opened = output.takes_opened
        columns = zip(self.descriptor.output_schema.columns, operator.expressions, strict=True)
        computed = [column.width_is_exact for column, one in columns if not isinstance(one.expression, ColumnRef)]
        self.may_widen = not all(computed)

    def ahead(self) -> Ahead | None:
        """Return the evaluation of whole batches, as far as they do not become wide; None where nothing is computed."""
        operator, behind = self.descriptor.operator, self.output.ahead()
        assert isinstance(operator, ProjectOperator)
        is_computed = any(not isinstance(one.expression, ColumnRef) for one in operator.expressions)
        if not operator.traits.is_repeatable or not (is_computed or behind):
            return None

        made = self.made_ahead = self.made_ahead or WorkAhead()

        def evaluate(batch: pa.RecordBatch) -> None:
            if self.is_narrow(batch):
                made.make(batch, self.make, behind)

        return evaluate

    def say_whole_groups(self) -> None:
        """Pass it on: of a row at most one comes out."""
        self.output.say_whole_groups()


def _passed_on(expressions: Sequence[NamedExpression], coded: Collection[str]) -> frozenset[str]:
    """Return the columns that become columns of the output as they are, and nothing else that takes no codes."""
    if not coded:
        return frozenset()
    passed = {one.expression.name for one in expressions if one.name in coded and isinstance(one.expression, ColumnRef)}
    needed = {name for one in expressions if one.name not in coded for name in columns_of(one.expression)}
    return frozenset(passed - needed)


class Filter(RowMapper, ChainedOperator):
    """Rows for which the predicate is true."""

    def open(self, context: TaskContext, output: Output) -> None:
        """Compile the predicate over the input's schema."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, FilterOperator)
        predicate = compile_predicate(operator.predicate, to_arrow_schema(self.descriptor.input_schemas[0]))
        self.make = lambda batch: kept_rows(batch, predicate.mask(batch))
        self.takes_opened = output.takes_opened

    def ahead(self) -> Ahead | None:
        """Return the evaluation of whole batches."""
        operator, behind = self.descriptor.operator, self.output.ahead()
        assert isinstance(operator, FilterOperator)
        if not is_deterministic(operator.predicate):
            return None
        made = self.made_ahead = self.made_ahead or WorkAhead()
        return lambda batch: made.make(batch, self.make, behind)

    def say_whole_groups(self) -> None:
        """Pass it on: of a row at most one comes out."""
        self.output.say_whole_groups()


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
