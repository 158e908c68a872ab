"""ScanThreads: a source that one task reads with several threads, and whose batches come in the order of its splits.

    scan = ScanThreads(readers, splits, context)     a reader for each thread, the first one for the task's own
    for batch in scan: ...                           while others read, the task works on what has its turn
    scan.close()

    splits          0 1 2 3 4 5 6 ...        each thread takes the next one when it has read the last
    task            0 work 2 work work 5     it reads where nothing else is to be done
    other thread    1 3 4 6 ...

Of what is behind the source, the other threads make projections and filters of their batches, so long as the task
needs them later (``work_ahead``).

A plan that reads little has one subtask, since rows that travel between two cost more than what is done with them
(``optimizer.small_parts``). To read and filter is half of its work or more, and needs no rows of others.

Invariant: ``_BATCHES_AHEAD`` batches for each thread wait, beside one of the split that has its turn. Errors come with
the turn of their split. Thread: the task's, but for ``_read_others``.
Held by: tests/operators/test_scan_threads.py
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from engine.closing import close_all
from engine.formats.source_reader import RunsReader, SharingReader, SourceReader
from engine.insight.processor_time import ProcessorTime
from engine.operators.work_ahead import is_large
from engine.records.bounded_batches import SmallBatches, put_together

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.graph.source_spec import SourceSplit
    from engine.operators.operator import TaskContext
    from engine.operators.task_services import HelperThread
    from engine.operators.work_ahead import Ahead

_BATCHES_AHEAD: Final = 2
_CHECK_EVERY_S: Final = 0.1


class ApartReader(SourceReader, SharingReader, RunsReader, Protocol):
    """A reader that takes its splits one by one, and has read all of one before it takes the next."""


class _Turns:
    """The splits, what was read of them, and whose turn it is. All is guarded by ``lock``."""

    def __init__(self, splits: Sequence[SourceSplit], batches_max: int) -> None:
        self.lock = threading.Lock()
        #: conditions of threads that wait for room, and of the task that waits for the batch that has its turn
        self.room, self.ready = threading.Condition(self.lock), threading.Condition(self.lock)
        self.splits = splits
        self.batches_max = batches_max
        #: number of the split that is taken next, and of the one that has its turn
        self.next = self.turn = 0
        self.batches: defaultdict[int, deque[pa.RecordBatch]] = defaultdict(deque)
        self.waiting_batches = 0
        #: splits that were read to their end, and errors of those that were not
        self.ended: set[int] = set()
        self.errors: dict[int, BaseException] = {}
        self.is_stopped = False

    @property
    def is_over(self) -> bool:
        return self.turn >= len(self.splits)

    def has_room(self, number: int) -> bool:
        """Return whether one more batch of a split may wait."""
        return self.waiting_batches < self.batches_max or (number == self.turn and not self.batches[number])

    def add(self, number: int, batch: pa.RecordBatch) -> None:
        self.batches[number].append(batch)
        self.waiting_batches += 1
        if number == self.turn:
            self.ready.notify()

    def pop(self) -> pa.RecordBatch | None:
        """Return the batch that has its turn; None: it is not there, or all is over. Raises the error of its split."""
        while not self.is_over:
            batches = self.batches.get(self.turn)
            if batches:
                self.waiting_batches -= 1
                self.room.notify_all()
                return batches.popleft()
            if self.turn in self.errors:
                raise self.errors[self.turn]
            if self.turn not in self.ended:
                return None
            self.batches.pop(self.turn, None)
            self.turn += 1
            self.room.notify_all()
        return None

    def end(self, number: int) -> None:
        self.ended.add(number)
        if number == self.turn:
            self.ready.notify()


class _Reading:
    """The batches that one thread reads, with the number of their split; ``ahead``: work with those that are large."""

    def __init__(self, turns: _Turns, reader: ApartReader, ahead: Ahead | None = None) -> None:
        self._turns = turns
        self._ahead = ahead
        #: batches of the split that are put together, so as to be large
        self._small = None if ahead is None else SmallBatches()
        self.number = -1
        reader.is_in_runs = True
        reader.take_from(self._take)
        self.batches = iter(reader)

    def ready(self, batch: pa.RecordBatch) -> Sequence[pa.RecordBatch]:
        """Return the batches that can be passed on when one has been read, with the work ahead done."""
        return [batch] if self._small is None else self._worked(self._small.add(batch))

    def _worked(self, batches: Sequence[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
        for batch in batches:
            if self._ahead is not None and is_large(batch):
                self._ahead(batch)
        return batches

    def _take(self) -> SourceSplit | None:
        turns = self._turns
        rest = [] if self._small is None else self._worked(self._small.rest())
        with turns.lock:
            for batch in rest:
                turns.add(self.number, batch)
            if self.number >= 0:
                turns.end(self.number)
            self.number = -1
            if turns.is_stopped or turns.next >= len(turns.splits):
                return None
            self.number = turns.next
            turns.next += 1
            return turns.splits[self.number]

    def fail(self, error: BaseException) -> None:
        """Have the task raise an error when the split has its turn, or at once where it is of none."""
        turns = self._turns
        with turns.lock:
            turns.errors[turns.turn if self.number < 0 else self.number] = error
            turns.ready.notify()


class ScanThreads:
    """See the module's text.

    Args:
        readers: at least one; they have been told all but their splits, and are closed with this.
        keeps_runs: whether batches have rows of one split each; else small ones are put together.
        ahead: returns work that other threads than the task's do with batches that are large (``work_ahead``).
    """

    def __init__(
        self,
        readers: Sequence[ApartReader],
        splits: Sequence[SourceSplit],
        context: TaskContext,
        *,
        keeps_runs: bool,
        ahead: Callable[[], Ahead | None] = lambda: None,
    ) -> None:
        self._readers = readers
        self._ahead = ahead
        self._context = context
        self._keeps_runs = keeps_runs
        self._turns = _Turns(splits, _BATCHES_AHEAD * len(readers))
        self._threads: list[HelperThread] = []
        #: the number of the split of the batch that came last
        self.run = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Return an iterator of the rows of all splits, in their order."""
        return self._batches() if self._keeps_runs else put_together(self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        own = _Reading(self._turns, self._readers[0])
        others = [_Reading(self._turns, reader, self._ahead()) for reader in self._readers[1:]]
        for other in others:
            self._start(lambda reading=other: self._read_others(reading))  # type: ignore[misc]
        turns, is_reading = self._turns, True
        while True:
            with turns.lock:
                batch = turns.pop()
                if batch is None and turns.is_over:
                    return
                self.run = turns.turn + 1
                reads = batch is None and is_reading and turns.has_room(own.number)
                if batch is None and not reads and not turns.ready.wait(_CHECK_EVERY_S):
                    self._context.check_cancelled()
            if batch is not None:
                yield batch
            elif reads:
                is_reading = self._read_one(own)
            del batch  # a wide one is not kept while the next is read

    def _read_one(self, own: _Reading) -> bool:
        """Read a batch in the task's thread; return False where there is none."""
        try:
            batch = next(own.batches, None)
        except Exception as error:
            own.fail(error)
            return False
        if batch is not None:
            with self._turns.lock:
                self._turns.add(own.number, batch)
        return batch is not None

    def _start(self, work: Callable[[], None]) -> None:
        thread = self._context.services.new_thread(work, f"drey-scan-{self._context.task_name}")
        thread.start()
        self._threads.append(thread)

    def _read_others(self, reading: _Reading) -> None:
        """Read splits until there is none, or the task wants no more. Thread: one of its own."""
        processor = ProcessorTime()
        self._context.helpers.append(processor)
        with processor.of_this_thread():
            try:
                for read in reading.batches:
                    for batch in reading.ready(read):
                        if not self._add(reading, batch):
                            return
                        del batch
                    del read
            except BaseException as error:
                reading.fail(error)

    def _add(self, reading: _Reading, batch: pa.RecordBatch) -> bool:
        """Have a batch wait for its turn when there is room; False: no more are wanted."""
        turns = self._turns
        with turns.lock:
            while not turns.is_stopped and not turns.has_room(reading.number):
                turns.room.wait()
            if not turns.is_stopped:
                turns.add(reading.number, batch)
            return not turns.is_stopped

    def close(self) -> None:
        """End the threads and close the readers; idempotent."""
        with self._turns.lock:
            self._turns.is_stopped = True
            self._turns.room.notify_all()
        threads, self._threads = self._threads, []
        close_all([*(thread.join for thread in threads), *(reader.close for reader in self._readers)])
