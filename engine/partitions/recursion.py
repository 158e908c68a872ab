"""Recursion: partitions that wait until the others have left their memory, and what is done with each.

    recursion = Recursion(level_max)
    recursion.add(parts)                    the last one is next
    for batch in recursion.results(consumer): ...
    recursion.close()                       always; idempotent

    part ─┬─ consumer.in_memory(part)      its results; None: it is larger than memory
          ├─ consumer.divided(part)        partitioned again, by the hash of its level: results of what stays in memory;
          │                                the other partitions are added and come next
          └─ consumer.undivided(part)      by another way: sorted, in blocks of rows, with a table that takes no more

A part is divided while its level is at most level_max and the last partitioning has made it smaller: a part that holds
most of what was partitioned is one key, or few, which stay together under every hash. So the recursion ends whatever
the keys are.

Invariants: a part is deleted when its results have been read, or are read no more.

Source: Graefe, "Query evaluation techniques for large databases" (1993), recursive partitioning.

Held by: tests/partitions/test_recursion.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
#: the most passes over a file that has been written twice
PASSES_MAX = 128


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
        self._current: P | None = None

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
            self._current = part = self._waiting.pop()
            try:
                found = consumer.in_memory(part)
                if found is None:
                    is_divisible = part.level <= self._level_max and part.has_shrunk
                    found = consumer.divided(part) if is_divisible else consumer.undivided(part)
                yield from found
            finally:
                self._current = None
                part.delete()

    def close(self) -> None:
        """Delete all parts; idempotent."""
        waiting, self._waiting = self._waiting, []
        if self._current is not None:
            waiting.append(self._current)
        close_all(part.delete for part in waiting)


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
