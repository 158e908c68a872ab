"""SortedRunsWriter: writes a SortedPartition: not batches but the sorted runs of a subtask, all at once.

    writer.keep(runs) ─► writer.finish() ─► writer.close()

Held by: tests/exchange/test_sorted_partition.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import IllegalTransitionError

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.exchange.sorted_partition import KeptRuns, SortedPartition


class SortedRunsWriter:
    """The writer of a SortedPartition."""

    def __init__(self, partition: SortedPartition) -> None:
        self.partition = partition
        self.rows = 0
        self.bytes = 0

    def keep(self, runs: KeptRuns) -> None:
        """Pass on everything that the subtask has."""
        self.partition.keep(runs)
        self.rows = self.partition.rows
        self.bytes = self.partition.total_bytes

    def emit(self, batch: pa.RecordBatch) -> None:
        """Refuse: batches are sorted before they get here."""
        raise IllegalTransitionError(f"partition {self.partition.id} takes sorted runs, not batches")

    def flush(self) -> None:
        """Do nothing: nothing waits here."""

    def flush_if_older_than(self, _age_ms: int) -> bool:
        """Return False: nothing waits here."""
        return False

    def finish(self) -> None:
        """Finish the partition."""
        self.partition.finish()

    def close(self) -> None:
        """Do nothing: the partition owns the runs."""
