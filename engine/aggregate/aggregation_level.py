"""AggregationLevel: one level of a final or single aggregate, from the first batch to its results.

    level = AggregationLevel(workspace, number, router)
    level.add(batch, form)*  ─►  for results in level.finish(): ...         always: level.close()

    GroupingPhase ──── the table is of no use ────► PartitionedPhase
     │  rows find their groups in the table          │  rows go to the partitions of their keys
     └───────────────────┬───────────────────────────┘
                         ▼ finish()
           results of what is in memory; all other partitions wait in the workspace for the next level

The input is level 0. A partition that is grouped by itself is one level deeper: a fresh hash parts what fell together.

Held by: tests/aggregate/test_hash_aggregate.py
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from engine.accumulators.aggregate_layout import AggregateLayout
from engine.aggregate.aggregate_state import AggregateState
from engine.aggregate.aggregate_workspace import AggregateWorkspace, InputForm
from engine.aggregate.grouping_phase import GroupingPhase
from engine.aggregate.partitioned_phase import PartitionedPhase
from engine.partitions.partition_router import PartitionRouter


class AggregationLevel:
    """Args: workspace: its table is empty; ``router``: of an input that comes as rows of states, else None."""

    def __init__(self, workspace: AggregateWorkspace, number: int, router: PartitionRouter | None = None) -> None:
        self._work, self._router = workspace, router
        watches_caches = router is not None or workspace.has_helpers or _has_texts(workspace.layout)
        self._grouping = GroupingPhase(workspace, number, watches_caches)
        self._phase: GroupingPhase | PartitionedPhase = self._grouping
        workspace.progress.enter(AggregateState.GROUPING)

    @property
    def groups_per_row(self) -> float:
        """Groups made for each row that the table has taken."""
        return self._grouping.groups_per_row

    def add(self, batch: pa.RecordBatch, form: InputForm) -> None:
        """Take rows or states. Raises: DataError: a sum overflows; SpillError: states cannot be written."""
        rows = self._phase.add(batch, form)
        if self._phase.is_of_no_use:
            self._hand_over()
            if rows < batch.num_rows:
                self._phase.add(batch.slice(rows), form)

    def _hand_over(self) -> None:
        """Move all groups to partitions, where what comes next on this level follows."""
        pages = self._grouping.pages_for_partitions()
        phase = self._phase = PartitionedPhase(self._work, self._grouping.level, pages, self._router)
        self._work.progress.enter(AggregateState.PARTITIONED)
        phase.take_over(self._grouping.take_groups())

    def end_run(self) -> Iterator[pa.RecordBatch]:
        """Yield the results of groups that are in the table, of which no row follows; the table is empty then."""
        return self._grouping.end_run() if self._phase is self._grouping else iter(())

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the results of what is in memory. Raises: as add."""
        self._work.progress.enter(AggregateState.EMITTING)
        yield from self._phase.finish()

    def close(self) -> None:
        """Give the pages of partitions back; idempotent."""
        self._phase.close()


def _has_texts(layout: AggregateLayout) -> bool:
    """Whether states are texts: each that is compared is one more wait for memory where groups outgrow the caches."""
    return any(pa.types.is_string(each.type) or pa.types.is_binary(each.type) for each in layout.empty_states.schema)
