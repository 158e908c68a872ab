"""PreAggregation: the phases partial and combine, which make rows, or states, fewer before they cross an exchange.

    grouping = PreAggregation(spec, layout, pool, space, value_owner)
    for states in grouping.add(batch): ...      all groups, when the table is full
    for states in grouping.finish(): ...        the rest
    grouping.close()

It writes no file: a group may come out several times, and the final phase merges its states. Where more than
pass_ratio of PASS_ROWS rows were new groups, it stops grouping and gives each row out as a group of its own
(``ungrouped_states``). Where the plan expects that, the first PASS_ROWS_EARLY rows say it, if they are in no order: n
rows have then met about n^2 / 2 / groups.

    131 072 rows, 115 000 new groups    grouping does not pay, unless the plan expects 4 million rows of a subtask:
                                        16 000 rows have met one of 57 000 groups, so there are about 460 000

Where the plan knows about how many rows there are (``rows_expected``), groups are estimated from the rows that have met
one, as long as the table holds all of them: it goes on where these are far fewer.

Very wide keys and values lie beside the table, in a file: with the job where rows that it sends may refer to them, so
that they are written once for both phases; else with the operator, until it passes rows through.

Source: adaptive partial aggregation in Spark and Velox; Larson, "Data reduction by partial preaggregation" (2002).

Held by: tests/aggregate/test_partial_aggregate.py
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from engine.accumulators.aggregate_layout import AggregateLayout
from engine.accumulators.ungrouped_states import ungrouped_states
from engine.aggregate.aggregate_spec import MERGING_PHASES, AggregateSpec
from engine.aggregate.aggregate_state import AggregateProgress, AggregateState
from engine.aggregate.state_columns import GroupScan
from engine.aggregate.table_insert import TableInsert, table_of
from engine.iomanager.spill_space import SpillSpace
from engine.memory.page_pool import PagePool
from engine.memory.value_stores import ValueOwner
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.plain_types import plain_batch

#: rows after which grouping is looked at
PASS_ROWS = 131072
#: rows after which it is looked at where the plan expects as many groups as rows
PASS_ROWS_EARLY = 16384
#: limit of bytes put aside by the values of PASS_ROWS_WIDE rows, which only this table reads
PASS_BYTES = 64 << 20
PASS_ROWS_WIDE = 8
#: groups relative to the rows that the plan expects, up to which grouping pays in the end
GROUPS_EXPECTED_MAX = 0.5


class PreAggregation:
    """Args: spec: its schemas are plain; layout: of the spec; value_owner: of wide values of the table."""

    #: values of an operator that writes no file, and takes no rows before they are decoded
    spilled_bytes, router = 0, None

    def __init__(
        self, spec: AggregateSpec, layout: AggregateLayout, pool: PagePool, space: SpillSpace, value_owner: ValueOwner
    ) -> None:
        """Take a page of the pool. Raises: MemoryBudgetError."""
        self._spec, self._layout, self._space = spec, layout, space
        # sum(x) and avg(x) add up once: they are two again when they are given out
        kept = layout.without_twins
        self._table = table_of(kept, pool, 1, separate_stores=False, force_spill=spec.force_spill)
        self._table.keep_outside(value_owner)
        self._binding = self._table.bind(kept.operations, kept.columns)
        self._progress = AggregateProgress()
        #: states given out so far
        self.group_count = 0
        self._rows_in = 0
        #: rows that the plan expects of this subtask, 0 once the table does not hold all groups
        self._rows_expected = spec.rows_expected
        #: rows, groups made and bytes put aside at the last look
        self._last_look = (0, 0, 0)

    @property
    def state(self) -> AggregateState:
        """GROUPING, PASSING_THROUGH, EMITTING or CLOSED."""
        return self._progress.state

    @property
    def holds_all_groups(self) -> bool:
        """Whether the groups of all rows so far are in the table, each once."""
        return self.state is AggregateState.GROUPING and self.group_count == 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take rows; the iterator does the work, and must be read to its end. Raises: DataError: a sum overflows."""
        first = 0
        if self._progress.state is AggregateState.GROUPING:
            opened = self._table.open(self._layout.key_columns, batch, self._binding)
            insert, is_whole = TableInsert(self._table, opened), False
            while not is_whole and self._progress.state is AggregateState.GROUPING:
                is_whole = insert.until_full()
                if not is_whole:
                    yield from self._give_out()
                self._check_reduction(self._rows_in + insert.position)
            first = insert.position
            self._rows_in += first
        if self._progress.state is AggregateState.PASSING_THROUGH:
            if self._table.group_count > 0:  # once: to empty a large table takes as long as to pass a batch
                yield from self._give_out()
            if first < batch.num_rows:
                self.group_count += batch.num_rows - first
                yield self._as_states(plain_batch(batch.slice(first)))

    def _as_states(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return each row as a group of its own."""
        if self._spec.phase in MERGING_PHASES:
            columns = [batch.column(column) for column in [*self._layout.key_columns, *self._layout.columns]]
            return pa.RecordBatch.from_arrays(columns, schema=self._spec.output_schema)
        return ungrouped_states(batch, self._layout, self._spec.output_schema)

    def _check_reduction(self, rows: int) -> None:
        """Stop grouping where, since the last look, it has not made rows fewer. Without keys it always does."""
        rows_before, groups_before, bytes_before = self._last_look
        looked_at, aside = rows - rows_before, self._space.spilled_bytes
        groups = self._table.groups_made - groups_before
        if looked_at >= PASS_ROWS or (looked_at >= PASS_ROWS_WIDE and aside - bytes_before >= PASS_BYTES):
            self._last_look = (rows, self._table.groups_made, aside)
        elif self._spec.expects_no_fewer and rows_before == 0 and looked_at >= PASS_ROWS_EARLY:
            met = (looked_at - groups) * PASS_ROWS // looked_at  # of a row, as many times more as there are more rows
            groups = looked_at - met
        else:
            return
        pays = groups <= self._spec.pass_ratio * looked_at or self._pays_later(looked_at, groups)
        if self._layout.key_columns and not pays:
            self._progress.enter(AggregateState.PASSING_THROUGH)

    def _pays_later(self, looked_at: int, groups: int) -> bool:
        """Whether rows have met so many of the groups in the table that there cannot be many more of these."""
        if self._rows_expected == 0 or looked_at == groups:
            return False
        in_table = self._table.group_count - groups / 2  # in the middle of the rows that are looked at
        return in_table * looked_at / (looked_at - groups) <= GROUPS_EXPECTED_MAX * self._rows_expected

    def _give_out(self) -> Iterator[pa.RecordBatch]:
        """Yield all groups as states, and empty the table."""
        schema, columns = self._spec.output_schema, self._layout.places_without_twins
        for states in GroupScan(self._table, 0, -1, schema, columns, BATCH_ROWS_MAX, BATCH_BYTES_MAX):
            self.group_count += states.num_rows
            yield states
        self._rows_expected = 0
        self._table.drop([0])

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the groups that have not been given out."""
        self._progress.enter(AggregateState.EMITTING)
        yield from self._give_out()

    def close(self) -> None:
        """Give every page back; idempotent."""
        self._progress.enter(AggregateState.CLOSED)
        self._table.close()
