"""PartitionedPhase: rows of one level go to the partitions of their keys, without a look at the table.

    phase = PartitionedPhase(workspace, level, pages, router)
    phase.take_over(groups)                     the groups of the table, which is empty then
    phase.add(batch, form)
    phase.finish()                              the partitions wait for the next level
    phase.close()                               always; idempotent

    groups of the table ─┐
    batches ─────────────┼──► ``state_partitions`` ──► in memory, merged on the way or not ──┬──► waiting
    rows of an exchange ─┘                         └─► files ────────────────────────────────┘
    (``PartitionRouter``)

What comes as rows of the input goes there as states, each a group of its own (``ungrouped_states``).

Held by: tests/aggregate/test_state_partitions.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from engine.accumulators.ungrouped_states import ungrouped_states
from engine.aggregate.aggregate_workspace import AggregateWorkspace, InputForm
from engine.aggregate.state_partitions import StatePartitions
from engine.closing import close_all
from engine.partitions.partition_router import PartitionRouter
from engine.records.plain_types import plain_batch


class PartitionedPhase:
    """Args: pages: at least one for each partition; ``router``: takes rows of the level as they are, or None."""

    is_of_no_use = False

    def __init__(self, workspace: AggregateWorkspace, level: int, pages: int, router: PartitionRouter | None) -> None:
        self.level = level
        self._work, self._router = workspace, router
        self._partitions = StatePartitions(
            workspace.layout, workspace.pool, workspace.space, workspace.files, workspace.partition_count, level, pages
        )
        if router is not None:
            router.begin(self._partitions.rows)

    def take_over(self, groups: Iterable[pa.RecordBatch]) -> None:
        """Take the groups that the table had. Raises: SpillError, DiskFullError."""
        for states in groups:
            self._partitions.add(states)
        self._work.table.reset(self.level + 1, expected_groups=0)
        if not self._work.spec.force_spill and not self._work.merger.merge_parts(self._partitions):
            self._partitions.fold_with(self._work.table, self._work.states.binding)

    def add(self, batch: pa.RecordBatch, form: InputForm) -> int:
        """Take rows, or states; return how many. Raises: as take_over, also DataError."""
        self._partitions.add(self._as_states(batch, form))
        return int(batch.num_rows)

    def _as_states(self, batch: pa.RecordBatch, form: InputForm) -> pa.RecordBatch:
        layout = self._work.layout
        if form is self._work.states:
            return batch
        if self._work.spec.phase == "final":
            columns = [batch.column(column) for column in [*layout.key_columns, *layout.columns]]
            return pa.RecordBatch.from_arrays(columns, schema=layout.state_schema)
        return ungrouped_states(plain_batch(batch), layout, layout.state_schema)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Let the partitions wait for the next level; nothing is given out yet."""
        kept = self._partitions.finish(everything=self._work.spec.force_spill)
        if self._router is not None:
            self._router.end()
        self._work.queue(kept, self.level + 1)
        return iter(())

    def close(self) -> None:
        """Give every page back."""
        close_all([self._partitions.close, *([] if self._router is None else [self._router.end])])
