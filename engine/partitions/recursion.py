"""Recursion: partitions that wait until the others have left their memory, and what is done with each.

    recursion = Recursion(level_max)
    recursion.add(parts)                    the last one is next
    for batch in recursion.results(consumer): ...
    recursion.close()                       always; idempotent

    part ─┬─ consumer.in_memory(part)      its results; None: it is larger than memory
          ├─ consumer.divided(part)        partitioned again, by the hash of its level: results of what stays in memory;
          │                                the other partitions are added and come next
          └─ consumer.undivided(part)      by another way: sorted, in blocks of rows, with a table that takes no more

With ``do_together`` the next parts that are in memory are done by several threads, a few at a time, as long as they are
small together; their results come in the same order.

A part is divided while its level is at most level_max and the last partitioning has made it smaller: a part that holds
most of what was partitioned is one key, or few, which stay together under every hash. So the recursion ends whatever
the keys are.

Invariants: a part is deleted when its results have been read, or are read no more.

Source: Graefe, "Query evaluation techniques for large databases" (1993), recursive partitioning.

Held by: tests/partitions/test_recursion.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

import msgspec

from engine.closing import close_all
from engine.iomanager.spill_file import SpillFile

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.partitions.row_partitions import KeptRows

#: the deepest level on which rows are partitioned: they are written twice
LEVEL_MAX = 2
#: a part with more than this share of the bytes that were partitioned is not divided again
SHRINK_LIMIT = 0.5
#: level of the files that have been written twice
LEVEL_WRITTEN_TWICE = 2
#: parts for each thread that are done together, so that none waits long for another
PARTS_A_THREAD = 4
#: the most passes over a file that has been written twice
PASSES_MAX = 128


class Threads(Protocol):
    """Threads of a task, its own among them (``operators.helper_threads``)."""

    @property
    def count(self) -> int:
        """Number of threads."""
        ...

    def run(self, work: Callable[[], None]) -> None:
        """Call work in all of them, until it has ended in each."""
        ...


class Part(Protocol):
    """Rows of one partition."""

    @property
    def level(self) -> int:
        """Level on which they can be divided."""
        ...

    @property
    def has_shrunk(self) -> bool:
        """Whether the last partitioning has made them fewer."""
        ...

    def delete(self) -> None:
        """Give pages back and delete files; idempotent."""
        ...


class WaitingPart(msgspec.Struct, frozen=True):
    """Rows of one input as files or pages; of several inputs in their order."""

    rows: tuple[SpillFile | KeptRows, ...]
    level: int
    has_shrunk: bool = True

    @property
    def page_count(self) -> int:
        """Pages that it holds."""
        return sum(0 if isinstance(each, SpillFile) else each.page_count for each in self.rows)

    @property
    def files(self) -> tuple[SpillFile, ...]:
        """The rows of a part that is in files."""
        return cast("tuple[SpillFile, ...]", self.rows)

    def delete(self) -> None:
        """Give pages back and delete files; idempotent."""
        close_all(each.delete for each in self.rows)


T = TypeVar("T")
P = TypeVar("P", bound=Part)
P_contra = TypeVar("P_contra", bound=Part, contravariant=True)


class Consumer(Protocol[P_contra]):
    """An operator that has partitions."""

    def in_memory(self, part: P_contra) -> Iterator[pa.RecordBatch] | None:
        """Return the results of a part; None: it is larger than memory."""
        ...

    def divided(self, part: P_contra) -> Iterator[pa.RecordBatch]:
        """Partition a part on its level, and yield the results of what stays in memory."""
        ...

    def undivided(self, part: P_contra) -> Iterator[pa.RecordBatch]:
        """Yield the results of a part that no hash divides."""
        ...


class Recursion(Generic[P]):
    """The parts that wait, the next one last."""

    def __init__(self, level_max: int = LEVEL_MAX) -> None:
        self._level_max = level_max
        self._waiting: list[P] = []
        #: parts that are being done
        self._taken: list[P] = []
        self._threads: Threads | None = None
        self._size_of: Callable[[P], int | None] = lambda _: None
        self._bytes_max = 0

    def do_together(self, threads: Threads | None, size_of: Callable[[P], int | None], bytes_max: int) -> None:
        """Have threads do parts of at most so many bytes together.

        Args: size_of: bytes of a part that ``in_memory`` of the consumer has results of, in any thread; else None.
        """
        self._threads, self._size_of, self._bytes_max = threads, size_of, bytes_max

    @property
    def waiting(self) -> Sequence[P]:
        """The parts that wait."""
        return self._waiting

    def add(self, parts: Iterable[P]) -> None:
        """Have parts wait; the last of them is next."""
        self._waiting.extend(parts)

    def results(self, consumer: Consumer[P]) -> Iterator[pa.RecordBatch]:
        """Yield the results of all parts, and of those that they are divided into."""
        while self._waiting:
            together = self._next_together()
            count = max(1, together)
            self._taken = parts = self._waiting[-count:][::-1]
            del self._waiting[-count:]
            try:
                if self._threads is not None and together:
                    yield from _in_threads(self._threads, consumer, parts)
                    continue
                (part,) = parts
                found = consumer.in_memory(part)
                if found is None:
                    is_divisible = part.level <= self._level_max and part.has_shrunk
                    found = consumer.divided(part) if is_divisible else consumer.undivided(part)
                yield from found
            finally:
                self._taken = []
                close_all(part.delete for part in parts)

    def _next_together(self) -> int:
        """Return the number of parts that threads do together next; 0: the next one is done alone."""
        if self._threads is None:
            return 0
        count, left = 0, self._bytes_max
        for part in self._waiting[: -PARTS_A_THREAD * self._threads.count - 1 : -1]:
            size = self._size_of(part)
            if size is None or size > left:
                break
            count, left = count + 1, left - size
        return count if count > 1 else 0

    def close(self) -> None:
        """Delete all parts; idempotent."""
        waiting, self._waiting = self._waiting, []
        close_all(part.delete for part in (*waiting, *self._taken))


def made_in_threads(threads: Threads, make: Callable[[int], T], count: int) -> Iterator[T]:
    """Yield the result of each number below a count, in order; threads make all of them first."""
    left, made = list(range(count))[::-1], dict[int, T]()

    def work() -> None:
        while left:
            try:
                number = left.pop()
            except IndexError:
                return
            made[number] = make(number)

    threads.run(work)
    for number in range(count):
        yield made.pop(number)


def _in_threads(threads: Threads, consumer: Consumer[P], parts: Sequence[P]) -> Iterator[pa.RecordBatch]:
    """Yield the results of parts, each of which a thread has made, in the order of the parts."""

    def results_of(number: int) -> list[pa.RecordBatch]:
        found = consumer.in_memory(parts[number])
        assert found is not None, "it is small"
        return list(found)

    for results in made_in_threads(threads, results_of, len(parts)):
        yield from results


def parts_of_files(files: Sequence[Sequence[SpillFile]], level: int, kept_bytes: int = 0) -> list[WaitingPart]:
    """Return the parts of what was partitioned.

    Args: files: of each input, by partition; kept_bytes: of partitions that stayed in memory.
    """
    rows = list(zip(*files, strict=True))
    sizes = [sum(file.raw_bytes for file in each) for each in rows]
    most = SHRINK_LIMIT * (sum(sizes) + kept_bytes)
    return [WaitingPart(each, level, size <= most) for each, size in zip(rows, sizes, strict=True)]


def passes_pay(passes: float, level: int, cheap: int) -> bool:
    """Return whether a part is better read several times than partitioned again.

    A few passes are cheaper than to write it once more; and what was written twice is not written again, so that bytes
    spilled stay below twice the input, whatever the memory.

    Args: cheap: passes that are cheaper than to write a part that was written once.
    """
    return passes <= (cheap if level < LEVEL_WRITTEN_TWICE else PASSES_MAX)
