"""Hash aggregation as an operator: takes all input, then emits the groups; a partial one may emit before.

Held by: tests/integration/test_aggregates.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.aggregate.aggregate_spec import PARTIAL_PHASES, PASS_RATIO, PASS_RATIO_BEFORE_SORT, AggregateSpec
from engine.aggregate.hash_aggregate import HashAggregate
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import HashAggregateOperator
from engine.operators.helper_threads import HelperThreads
from engine.operators.operator import ChainedOperator, Output, TaskContext
from engine.records.opened_batch import opened

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.iomanager.value_store import CountedValues


class Aggregate(ChainedOperator):
    """Hash aggregation in one of its phases."""

    takes_opened = True
    #: an aggregate needs all of its input
    is_satisfied = False

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the operator's memory."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, HashAggregateOperator)
        spec = AggregateSpec(
            operator.phase,
            to_arrow_schema(self.descriptor.input_schemas[0]),
            operator.keys,
            operator.calls,
            to_arrow_schema(self.descriptor.output_schema),
            force_spill=context.force_spill,
            pass_ratio=PASS_RATIO_BEFORE_SORT if operator.is_sorted_next else PASS_RATIO,
            expects_no_fewer=operator.expects_no_fewer,
            rows_expected=operator.rows_expected,
        )
        pool, space = context.page_pool(self.descriptor), context.spill_space(self.descriptor)
        owner = self._value_owner(context, operator.phase)
        helpers = HelperThreads(context, operator.threads) if operator.threads > 1 else None
        self._aggregate: HashAggregate | None = HashAggregate(spec, pool, space, owner, helpers)
        self._by_run, self._run = operator.by_run, context.run
        self.router = self._aggregate.router
        self.compact_columns = self._aggregate.compact_columns

    def _value_owner(self, context: TaskContext, phase: str) -> CountedValues | None:
        """Return the owner of a partial aggregate's wide values: the space that the rows it sends refer to."""
        return context.value_owner(self.descriptor) if phase in PARTIAL_PHASES and context.shares_values else None

    @property
    def _open_aggregate(self) -> HashAggregate:
        assert self._aggregate is not None, "aggregate is closed"
        return self._aggregate

    def say_whole_groups(self) -> None:
        """Give the results of states out as they come, where the plan says that these are all of their group."""
        operator = self.descriptor.operator
        assert isinstance(operator, HashAggregateOperator)
        if operator.takes_whole_groups and self.context.descriptor.parallelism == 1:
            self._open_aggregate.take_whole_groups()

    def process(self, batch: pa.RecordBatch) -> None:
        """Add a batch; a partial aggregate may emit, and so does one of runs when the next one begins."""
        aggregate = self._aggregate
        assert aggregate is not None, "aggregate is closed"
        if self._by_run and self._run != self.context.run:
            self._run = self.context.run
            for result in aggregate.end_run():
                self._pass_on(result)
        for result in aggregate.add_batch(batch):
            self._pass_on(result)

    def finish(self) -> None:
        """Emit the groups."""
        if self._open_aggregate.has_whole_groups:
            self.output.say_whole_groups()
        for result in self._open_aggregate.finish():
            self.context.check_cancelled()
            self._pass_on(result)

    def _pass_on(self, result: pa.RecordBatch) -> None:
        self.output.process(opened(result) if self.output.takes_opened else result)

    def close(self) -> None:
        """Give pages and files back."""
        if getattr(self, "_aggregate", None) is not None:
            self._open_aggregate.close()
            self._aggregate = None
