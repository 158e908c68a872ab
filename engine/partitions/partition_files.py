"""PartitionFiles: the spill files of one level of partitions, one for each that was written.

    count, block_size = partitions_of_memory(page_count, page_size)
    files = PartitionFiles(space, block_size)
    writer = files.writer(partition)        made when it is first asked for
    files.has(partition)
    finished = files.finish()               SpillFiles of the partitions that have one; the level is over
    files.discard()                         instead of finish(), or after one that failed, when the operator ends early

Invariants: one open writer for each partition at most; after finish() no partition has one.

Held by: tests/partitions/test_partition_files.py
"""

from __future__ import annotations

from engine.closing import close_all
from engine.iomanager.spill_file import SpillFile
from engine.iomanager.spill_space import SpillSpace
from engine.iomanager.spill_writer import SpillWriter

BLOCK_SIZE_MIN = 4 << 10
BLOCK_SIZE_MAX = 256 << 10
PARTITIONS_MIN = 4
PARTITIONS_MAX = 64
#: fewest pages for each partition with which it has pages of its own
PARTITION_PAGES_MIN = 4


def partitions_of_memory(page_count: int, page_size: int) -> tuple[int, int]:
    """Return (partitions of a level, block size of their files).

    The blocks of all take a quarter of the memory; half of it where the partitions share pages anyway: the fewer there
    are, the larger is each, and the more often it is read.
    """
    memory_bytes = page_count * page_size
    count = _count(memory_bytes // 4)
    if page_count < PARTITION_PAGES_MIN * count:
        count = _count(memory_bytes // 2)
    return count, block_size_of(memory_bytes, count)


def block_size_of(memory_bytes: int, partition_count: int) -> int:
    """Return the block size of so many files whose blocks take a quarter of the memory."""
    size = 1 << max(memory_bytes // (4 * partition_count), 1).bit_length() - 1
    return min(max(size, BLOCK_SIZE_MIN), BLOCK_SIZE_MAX)


def _count(block_bytes: int) -> int:
    blocks = block_bytes // BLOCK_SIZE_MIN
    return min(max(1 << blocks.bit_length() - 1 if blocks else 0, PARTITIONS_MIN), PARTITIONS_MAX)


def partitions_of_pages(page_count: int) -> int:
    """Return the number of partitions that have pages of their own, a power of two."""
    return min(1 << max(1, page_count // PARTITION_PAGES_MIN).bit_length() - 1, PARTITIONS_MAX)


class PartitionFiles:
    """Writers by partition."""

    def __init__(self, space: SpillSpace, block_size: int) -> None:
        self._space = space
        self._block_size = block_size
        self._writers: dict[int, SpillWriter] = {}

    def writer(self, partition: int) -> SpillWriter:
        """Return the partition's writer."""
        if partition not in self._writers:
            self._writers[partition] = self._space.writer(f"partition {partition}", block_size=self._block_size)
        return self._writers[partition]

    def has(self, partition: int) -> bool:
        """Whether rows of the partition were written."""
        return partition in self._writers

    @property
    def any(self) -> bool:
        """Whether rows of any partition were written."""
        return bool(self._writers)

    @property
    def raw_bytes(self) -> int:
        """Bytes written by the writers that are open."""
        return sum(writer.raw_bytes for writer in self._writers.values())

    def finish(self) -> list[SpillFile]:
        """Finish every writer and return their files, in order of partitions."""
        return [self._writers.pop(partition).finish() for partition in sorted(self._writers)]

    def discard(self) -> None:
        """End every writer and remove what it wrote; the first error is raised after all were ended."""
        writers, self._writers = self._writers, {}
        close_all(writer.discard for writer in writers.values())
