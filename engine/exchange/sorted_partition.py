"""SortedPartition: a BLOCKING result whose rows are kept as sorted runs and read by ranges of keys.

    producer   new_partition(descriptor, ...) ─► SortedRunsWriter(partition) ─► keep(runs) ─► finish()
    JobMaster  samples of all producers ─► bounds of as many ranges as there are consumers
    consumer   partition.runs ─► its range of every producer's runs, merged ─► ... ─► release()

    producer 0   │ run ▓▓▓▓░░░░▒▒▒▒ │ run ▓▓░░░░▒▒ │         ▓ range of consumer 0
    producer 1   │ run ▓▓▓░░░░░▒▒▒▒ │                        ░ of consumer 1     ▒ of consumer 2

A row is written once, wherever its range will begin: the bounds are needed only when all rows are there. So they are
exact after any operator, without reading the input twice. Rows stay in the pages in which they were sorted;
files hold what did not fit, or what gave its pages to other operators (``SortedRuns.spill``). There are no
subpartitions: a consumer in the producer's process reads the runs themselves, one in another process its range of them
as row pages in order (``create_range_view``), which it writes to a run of its own before it merges.

Source: the sort-merge BLOCKING partition of Flink (one file, read in parts) with keys in place of subpartitions.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, Protocol

from engine.errors import IllegalTransitionError
from engine.exchange.partition_life import PartitionLife, PartitionState
from engine.exchange.range_view import OrderedPages, RangeView
from engine.exchange.result_partition import ResultPartition
from engine.graph.deployment import RangeSamples
from engine.graph.subpartition_share import WHOLE

if TYPE_CHECKING:
    from engine.exchange.read_ahead import DiskReaders
    from engine.exchange.ready_queue import ReadyQueue
    from engine.exchange.subpartition_view import SubpartitionView
    from engine.graph.deployment import KeyRange, ResultPartitionDescriptor
    from engine.ids import ResultPartitionId

#: keys of one producer that the JobMaster gets
SAMPLES_MAX: Final = 512


class KeptRuns(Protocol):
    """Sorted runs of one producer: ``engine.sort.sorted_runs.SortedRuns``."""

    spilled_bytes: int

    @property
    def row_count(self) -> int:
        """Rows of all runs."""
        ...

    @property
    def row_bytes(self) -> int:
        """Bytes of all rows in binary form."""
        ...

    def samples(self, count: int) -> tuple[list[bytes], list[int]]:
        """Return keys and the bytes of rows that each stands for."""
        ...

    def range_pages(self, lower: bytes | None, upper: bytes | None) -> OrderedPages:
        """Return the rows of a range of keys, in order."""
        ...

    def belong_to(self, partition: ResultPartitionId) -> None:
        """Name this partition in errors of reading."""
        ...

    def release(self) -> None:
        """Give memory and files back; idempotent."""
        ...


class SortedPartition(ResultPartition):
    """One producer's sorted runs, as a result partition. Has no buffers: rows lie where they were sorted."""

    def __init__(self, descriptor: ResultPartitionDescriptor) -> None:
        self.descriptor = descriptor
        self.life = PartitionLife(descriptor.id)
        self.total_bytes = 0
        self.rows = 0
        self._runs: KeptRuns | None = None
        self._spilled_before = 0

    @property
    def runs(self) -> KeptRuns:
        """The runs, once they are complete.

        Raises:
            PartitionReleasedError: too late.
            IllegalTransitionError: too early.
        """
        runs = self._runs
        self.life.check_readable()
        if self.state is not PartitionState.FINISHED or runs is None:
            raise IllegalTransitionError(f"partition {self.id} is {self.state.name} and cannot be read")
        return runs

    @property
    def spilled_bytes(self) -> int:
        """Bytes of rows written to disk since the runs are here; spills of the sort itself count for its operator."""
        return 0 if self._runs is None else self._runs.spilled_bytes - self._spilled_before

    def keep(self, runs: KeptRuns) -> None:
        """Take all rows; they are released in any case."""
        self._spilled_before = runs.spilled_bytes
        self._runs = runs
        runs.belong_to(self.id)
        try:
            self.check_producing()
        except BaseException:
            runs.release()
            raise
        self.rows = runs.row_count
        self.total_bytes = runs.row_bytes

    def samples(self) -> RangeSamples:
        """Return keys from all over the rows with the bytes each stands for, ordered and bounded in number."""
        if self._runs is None:
            return RangeSamples()
        keys, weights = self._runs.samples(SAMPLES_MAX)
        ordered = sorted(zip(keys, weights, strict=True))
        step = -(-len(ordered) // SAMPLES_MAX) or 1
        groups = [ordered[start : start + step] for start in range(0, len(ordered), step)]
        return RangeSamples(
            tuple(group[0][0] for group in groups), tuple(sum(weight for _, weight in group) for group in groups)
        )

    def finish(self) -> None:
        """End production: the runs can be read from here on."""
        self.life.finish()

    def drop(self, _error: BaseException | None) -> None:
        """Give memory and files back."""
        if self._runs is not None:
            self._runs.release()

    def create_view(
        self,
        _subpartition_index: int,
        _listener: ReadyQueue,
        _channel: int,
        _disk: DiskReaders | None = None,
        _part: tuple[int, int] = WHOLE,
    ) -> SubpartitionView:
        """Refuse: there are no subpartitions."""
        raise IllegalTransitionError(f"the sorted result {self.id} is read by ranges of keys")

    def create_range_view(
        self, key_range: KeyRange, page_bytes: int, listener: ReadyQueue, channel: int, disk: DiskReaders | None = None
    ) -> SubpartitionView:
        """Return a reader of the rows in a range, in order, as pages of at most that size.

        Args: disk: merges the runs, so that ``poll`` never waits for a file.
        """
        open_pages = functools.partial(self.runs.range_pages, key_range.lower, key_range.upper)
        view = RangeView(open_pages, page_bytes, disk, functools.partial(listener.push_channel, channel))
        listener.push_channel(channel)
        return view
