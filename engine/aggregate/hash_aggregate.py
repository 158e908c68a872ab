"""HashAggregate: groups rows by key columns, in more groups than fit in its pages.

    aggregate = HashAggregate(spec, pool, space)            spec: ``aggregate_spec``
    for batch in aggregate.add_batch(batch): ...            partial, combine: states, when the table is full
                 or add_page(segment, used_bytes), add_rows(buffer): binary rows
    for batch in aggregate.end_run(): ...                   single: what follows has none of the groups before
    for batch in aggregate.finish(): ...                    the rest
    aggregate.close()                                       always; idempotent

    HashAggregate       batches checked and read as the layout wants them; counts
     ├─ PreAggregation    partial, combine: gives groups out when the table is full, or passes rows through
     └─ FullAggregation   final, single: levels of partitions until each group has come out once
         └─ AggregationLevel   GroupingPhase ──► PartitionedPhase

Which state follows on which: ``aggregate_state`` draws it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from engine.accumulators.aggregate_layout import aggregate_layout, check_output
from engine.accumulators.moment_kernels import pairs_of
from engine.aggregate.aggregate_spec import MERGING_PHASES, PARTIAL_PHASES, AggregateSpec
from engine.aggregate.aggregate_state import AggregateState
from engine.aggregate.full_aggregation import FullAggregation
from engine.aggregate.pre_aggregation import PreAggregation
from engine.errors import SchemaError
from engine.iomanager.spill_space import SpillSpace
from engine.memory.page_pool import PagePool
from engine.memory.segment import MemorySegment
from engine.memory.value_stores import ValueOwner
from engine.operators.helper_threads import HelperThreads
from engine.partitions.partition_router import PartitionRouter
from engine.records.arrow_functions import pc
from engine.records.narrow_decimals import is_narrow, is_wide_decimal
from engine.records.plain_types import plain_batch, plain_schema, plain_type
from engine.records.row_codec import RowCodec

if TYPE_CHECKING:
    from typing_extensions import Buffer


class HashAggregate:
    """Groups rows by key columns. Thread: its task's."""

    def __init__(
        self,
        spec: AggregateSpec,
        pool: PagePool,
        space: SpillSpace,
        value_owner: ValueOwner | None = None,
        helpers: HelperThreads | None = None,
    ) -> None:
        """Take two pages of the pool.

        Args: value_owner: of wide values of the table, None: the space; helpers: threads of the task, None: its own.
        Raises: SchemaError, NotYetSupportedError, MemoryBudgetError.
        """
        self._input_codec = RowCodec(spec.input_schema)
        self._input_schema, output_schema = plain_schema(spec.input_schema), plain_schema(spec.output_schema)
        self._is_merging = spec.phase in MERGING_PHASES
        self._layout = aggregate_layout(self._input_schema, spec.keys, spec.calls, merging=self._is_merging)
        check_output(self._layout, output_schema, gives_states=spec.phase in PARTIAL_PHASES)
        #: rows that came in
        self.rows_in = 0
        self.compact_columns = self._columns_that_may_be_compact()
        #: schema of the last batch, after decoding columns that must not be compact
        self._known_schema = self._input_schema
        spec = msgspec.structs.replace(spec, input_schema=self._input_schema, output_schema=output_schema)
        self._grouping: PreAggregation | FullAggregation
        if spec.phase in PARTIAL_PHASES:
            self._grouping = PreAggregation(spec, self._layout, pool, space, value_owner or space)
        else:
            self._grouping = FullAggregation(spec, self._layout, pool, space, value_owner or space, helpers)

    @property
    def router(self) -> PartitionRouter | None:
        """The ``PartitionRouter`` that takes states as rows, if they come as such."""
        return self._grouping.router

    def _columns_that_may_be_compact(self) -> frozenset[str]:
        """Return the columns that may come smaller than plain.

        Keys that are nothing else as codes of dictionaries; as narrow decimals those that are added up or counted, and
        nothing else.
        """
        codes = {*self._layout.key_columns} - {*self._layout.columns}
        summed = set() if self._is_merging else self._layout.summed_columns
        fields = list(self._input_schema)
        return frozenset(
            field.name
            for index, field in enumerate(fields)
            if index in (summed if is_wide_decimal(field.type) else codes)
        )

    @property
    def state(self) -> AggregateState:
        """The state of the aggregate."""
        return self._grouping.state

    @property
    def group_count(self) -> int:
        """Groups given out so far (partial: states)."""
        return self._grouping.group_count

    @property
    def spilled_bytes(self) -> int:
        """Bytes of states written to files so far, before compression."""
        return self._grouping.spilled_bytes

    @property
    def has_whole_groups(self) -> bool:
        """Whether a first phase holds all of its groups, so that each comes out once."""
        return isinstance(self._grouping, PreAggregation) and self._grouping.holds_all_groups

    def take_whole_groups(self) -> None:
        """Give out results of the states that come, each of which is all of its group; before the first batch."""
        assert isinstance(self._grouping, FullAggregation), "a first phase has no results"
        self._grouping.take_whole_groups()

    def add_batch(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take the rows of a batch; the iterator must be read to its end (partial does its work there).

        Raises:
            SchemaError: the batch has other columns than the input schema.
            DataError: a sum overflows.
            SpillError: states cannot be written.
        """
        if not batch.schema.equals(self._known_schema):
            batch = plain_batch(batch, self.compact_columns)
            if not self._is_input(batch.schema):
                raise SchemaError(f"an aggregate of {self._input_schema} got a batch of {batch.schema}")
            self._known_schema = batch.schema
        self.rows_in += batch.num_rows
        for column in self._layout.columns_as_double:
            doubles = pc.cast(batch.column(column), pa.float64(), safe=False)
            batch = batch.set_column(column, self._input_schema.names[column], doubles)
        for column in self._layout.columns_as_pairs:
            batch = batch.set_column(column, self._input_schema.names[column], pairs_of(batch.column(column)))
        return self._grouping.add(batch)

    def _is_input(self, schema: pa.Schema) -> bool:
        return schema.names == self._input_schema.names and all(
            plain_type(field.type) == wanted or (field.name in self.compact_columns and is_narrow(field.type, wanted))
            for field, wanted in zip(schema, self._input_schema.types, strict=True)
        )

    def add_page(self, segment: MemorySegment, used_bytes: int) -> Iterator[pa.RecordBatch]:
        """Take the binary rows in the first used_bytes of a segment; otherwise as add_batch, also CorruptBlockError."""
        return self.add_rows(memoryview(segment)[:used_bytes])

    def add_rows(self, buffer: Buffer) -> Iterator[pa.RecordBatch]:
        """Take contiguous binary rows of the input schema; otherwise as add_batch, also CorruptBlockError."""
        return self.add_batch(self._input_codec.from_rows(buffer))

    def end_run(self) -> Iterator[pa.RecordBatch]:
        """Yield results of groups of which no row follows; as many as pay: the others are kept for later.

        Raises: RuntimeError: a partial aggregate, which gives out states.
        """
        if isinstance(self._grouping, PreAggregation):
            raise RuntimeError("a partial aggregate has no results")
        return self._grouping.end_run()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining results (partial: states). Without keys there is at least one row.

        Raises: as add_batch.
        """
        return self._grouping.finish()

    def close(self) -> None:
        """Give every page back and delete every file; idempotent, in every state."""
        self._grouping.close()
