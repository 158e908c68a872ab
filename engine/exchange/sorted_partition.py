"""SortedPartition: a BLOCKING result whose rows are kept as sorted runs and read by ranges of keys.

    producer   new_partition(descriptor, ...) ─► SortedRunsWriter(partition) ─► keep(runs) ─► finish()
    JobMaster  samples of all producers ─► bounds of as many ranges as there are consumers
    consumer   partition.runs ─► its range of every producer's runs, merged ─► ... ─► release()

    producer 0   │ run ▓▓▓▓░░░░▒▒▒▒ │ run ▓▓░░░░▒▒ │         ▓ range of consumer 0
    producer 1   │ run ▓▓▓░░░░░▒▒▒▒ │                        ░ of consumer 1     ▒ of consumer 2

A row is written once, wherever its range will begin: nobody needs to know the bounds before all rows are there, so
they are exact, behind any operator and without reading the input twice. Rows stay in the managed pages in which they
were sorted; files hold what did not fit, or what others had more use for (``SortedRuns.spill``). There are no
subpartitions: a consumer in the producer's process reads the runs themselves, one in another process its range of them
as row pages in order (``create_range_view``), which it writes to a run of its own before it merges.

Source: the sort-merge BLOCKING partition of Flink (one file, read in parts) with keys in place of subpartitions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from engine.errors import IllegalTransitionError, PartitionReleasedError
from engine.exchange.buffer_pool import Buffer, BufferKind, unpooled_buffer
from engine.exchange.elements import END_OF_PARTITION, EndOfPartitionEvent
from engine.exchange.read_ahead import ReadAhead
from engine.exchange.ready_queue import ReadyQueue
from engine.exchange.result_partition import PartitionFileSpace, PartitionState, ResultPartition, SubpartitionView
from engine.graph.deployment import KeyRange, RangeSamples, ResultPartitionDescriptor
from engine.graph.ship_strategy import SORTED_RUNS
from engine.graph.subpartition_share import WHOLE

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.exchange.buffer_pool import LocalBufferPool
    from engine.exchange.read_ahead import DiskReaders
    from engine.ids import ResultPartitionId

#: keys of one producer that the JobMaster gets
SAMPLES_MAX: Final = 512
#: pages of a range that are said to be ready: nobody counts them beforehand
_BACKLOG: Final = 8
#: pages of a range that are merged at a time
_PAGES_AT_ONCE: Final = 8


class OrderedPages(Protocol):
    """Rows of a range in order: ``engine.sort.sorted_runs.RangePages``."""

    def fill(self, target: bytearray | memoryview) -> int:
        """Copy whole rows: their bytes, 0 at the end, or minus the bytes of a row that needs more."""
        ...

    def close(self) -> None:
        """Close files; idempotent."""
        ...


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
    """One producer's sorted runs, as a result partition."""

    _runs: KeptRuns | None = None
    _spilled_before: int = 0

    @property
    def runs(self) -> KeptRuns:
        """The runs, once they are complete.

        Raises:
            PartitionReleasedError: too late.
            IllegalTransitionError: too early.
        """
        runs = self._runs
        if self.state is PartitionState.RELEASED:
            error = PartitionReleasedError(f"partition {self.id} was released and cannot be read")
            error.partition = self.id
            raise error
        if self.state is not PartitionState.FINISHED or runs is None:
            raise IllegalTransitionError(f"partition {self.id} is {self.state.name} and cannot be read")
        return runs

    @property
    def spilled_bytes(self) -> int:
        """Bytes of rows written to disk since the runs are here; what the sort itself spilled is its operator's."""
        return 0 if self._runs is None else self._runs.spilled_bytes - self._spilled_before

    @property
    def subpartition_bytes(self) -> tuple[int, ...]:
        """Nothing: ranges are known to consumers only."""
        return ()

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

    def create_view(
        self,
        subpartition_index: int,
        listener: ReadyQueue,
        channel: int,
        disk: DiskReaders | None = None,
        part: tuple[int, int] = WHOLE,
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

    def fail(self, error: BaseException) -> None:
        """Drop everything."""
        super().fail(error)
        self._release_runs()

    def release(self) -> None:
        """Give memory and files back. Idempotent. Thread: any."""
        super().release()
        self._release_runs()

    def _release_runs(self) -> None:
        if self._runs is not None and self.state in (PartitionState.RELEASED, PartitionState.FAILED):
            self._runs.release()


class RangeView:
    """One reader of a range, for another process. Used by one thread."""

    def __init__(
        self,
        open_pages: Callable[[], OrderedPages],
        page_bytes: int,
        disk: DiskReaders | None,
        notify: Callable[[], None],
    ) -> None:
        self._open_pages = open_pages
        self._pages: OrderedPages | None = None
        self._page = bytearray(page_bytes)
        self._large: memoryview | None = None
        self._is_ended = False
        self._ahead = ReadAhead(self._load, disk, notify, self._close)

    def poll(self) -> tuple[Buffer | EndOfPartitionEvent | None, bool]:
        """Return (page, fragment of a large row, the end, or None while nothing is there; whether more may follow)."""
        element, is_coming = self._ahead.take()
        if element is None and not is_coming:
            self._is_ended = True
            return END_OF_PARTITION, False
        return element, element is not None

    def poll_pages(self, _pages: list[Buffer], _count_max: int, _bytes_max: int) -> int:
        """Add none: pages come one by one."""
        return 0

    def backlog(self) -> int:
        """Return some pages until the end is reached."""
        return 0 if self._is_ended else _BACKLOG

    def consumed(self) -> None:
        """Do nothing: the runs stay."""

    def release(self) -> None:
        """Close files. Idempotent."""
        self._ahead.release()

    def _load(self) -> list[Buffer]:
        if self._pages is None:
            self._pages = self._open_pages()
        pages: list[Buffer] = []
        while len(pages) < _PAGES_AT_ONCE:
            page = self._next_page(self._pages)
            if page is None:
                break
            pages.append(page)
        return pages

    def _next_page(self, pages: OrderedPages) -> Buffer | None:
        """Return the next page, or fragment of a large row; None at the end."""
        if self._large is None:
            used = pages.fill(self._page)
            if used > 0:
                return unpooled_buffer(memoryview(self._page)[:used])
            if used == 0:
                return None
            row = bytearray(-used)
            pages.fill(row)
            self._large = memoryview(row)
        fragment, rest = self._large[: len(self._page)], self._large[len(self._page) :]
        self._large = rest if rest else None
        return unpooled_buffer(fragment, BufferKind.FRAGMENT if rest else BufferKind.LAST_FRAGMENT)

    def _close(self) -> None:
        if self._pages is not None:
            self._pages.close()
        self._large = None


class SortedRunsWriter:
    """The writer of a SortedPartition: what is written are runs, all at once."""

    def __init__(self, partition: SortedPartition) -> None:
        self.partition = partition
        self.rows = 0
        self.bytes = 0

    def keep(self, runs: KeptRuns) -> None:
        """Hand over everything that the subtask has."""
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


def new_partition(
    descriptor: ResultPartitionDescriptor,
    pool: LocalBufferPool,
    space: PartitionFileSpace | None = None,
) -> ResultPartition:
    """Return the partition of a descriptor: of sorted runs, or of subpartitions."""
    kind = SortedPartition if descriptor.partitioner.kind == SORTED_RUNS else ResultPartition
    return kind(descriptor, pool, space)
