"""SpilledPair: a build file and the probe file that waits for it, and how to join the two.

    SpilledPair ──should_reverse()──► reversed()          the smaller file is built, whichever side it came from
         └──passes_pay()──► block-wise      load build rows until memory is full, stream the probe file, repeat
                      └───► ``recursion``   scatter both again, at the next level; block-wise where that is of no use

A build file that fits is one block: no need to scatter it. One of more blocks is joined part by part of its keys: both
files are read for each part, and rows of others cost no more than a hash. A file that did not shrink (a key dominates:
1 key of 99 % of the rows stays together under every hash) or lies too deep is joined in blocks of rows as they come, in
as many passes over the probe file as it takes.

Sizes of both sides are known only now, which is why roles are chosen again: every join type runs with either side built
(``join_type``).

Source: role reversal is in Graefe et al., "Hash joins and hash teams in SQL Server". Flink's BinaryHashTable gives up
after level 3 and passes the partition to a sort-merge join; its older table throws ("Hash join exceeded maximum number
of recursions").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from engine.partitions.recursion import passes_pay

if TYPE_CHECKING:
    from engine.iomanager.spill_file import SpillFile

#: deepest level that is scattered
LEVEL_MAX = 3
#: a partition with more than this part of its parent's rows did not shrink: there may be two partitions only
SHRINK_LIMIT = 0.9
#: partitions of a level at most
FAN_OUT_MAX = 64
#: passes over both files that are cheaper than to write them once more
PASSES_CHEAP = 8
#: the fewest pages a hash join runs with
PAGES_MIN = 6


class SpilledPair(msgspec.Struct, frozen=True):
    """Build and probe rows of one spilled partition."""

    build_file: SpillFile
    probe_file: SpillFile
    build_rows: int
    build_bytes: int
    probe_rows: int
    probe_bytes: int
    #: level of the partitions that this pair would be scattered into
    level: int
    #: build and probe rows of the partitions this one came from, together
    parent_rows: int
    parent_probe_rows: int
    #: True if these roles are the reverse of those that the join began with
    is_reversed: bool = False

    def reversed(self) -> SpilledPair:
        """Return the pair with build and probe exchanged."""
        return SpilledPair(
            build_file=self.probe_file,
            probe_file=self.build_file,
            build_rows=self.probe_rows,
            build_bytes=self.probe_bytes,
            probe_rows=self.build_rows,
            probe_bytes=self.build_bytes,
            level=self.level,
            parent_rows=self.parent_probe_rows,
            parent_probe_rows=self.parent_rows,
            is_reversed=not self.is_reversed,
        )

    def should_reverse(self, block_count: int) -> bool:
        """Return whether to build from the probe file: it is the smaller one, and the build file is not one block."""
        return block_count > 1 and self.probe_rows > 0 and self.probe_bytes < self.build_bytes

    def delete(self) -> None:
        """Delete both files."""
        self.build_file.delete()
        self.probe_file.delete()

    @property
    def has_shrunk(self) -> bool:
        """Whether scattering made fewer rows of its parent's: no key dominates."""
        return self.build_rows <= SHRINK_LIMIT * self.parent_rows

    def passes_pay(self, block_count: int) -> bool:
        """Return whether the pair is better joined block-wise, in so many blocks of build rows, than scattered."""
        passes_bytes = (block_count - 1) * self.probe_bytes
        scatter_bytes = 2 * (self.build_bytes + self.probe_bytes)
        return passes_pay(block_count, self.level, PASSES_CHEAP) or passes_bytes <= scatter_bytes

    def part_count(self, block_count: int) -> int:
        """Return the number of parts of its keys for a block-wise join: 1, or so many that each fits one block.

        A large build file is not read several times for the sake of a small probe file.
        """
        if block_count <= 1 or not self.has_shrunk or self.build_bytes > 4 * self.probe_bytes:
            return 1
        return block_count + block_count // 4 + 1


def first_fan_out(page_limit: int) -> int:
    """Return the number of partitions of level 0, whose input size is unknown: 3 with 6 pages, 64 with 256.

    Each holds a page once it is spilled: a quarter of them all, half where they are few.
    """
    return max(2, min(FAN_OUT_MAX, max(page_limit // 4, min(16, page_limit // 2))))


def next_fan_out(page_limit: int, page_size: int, build_bytes: int, memories: int = 0) -> int:
    """Return the number of partitions for a build file of known size: each should fit half of the memory.

    Args: memories: that it fills where rows are counted in place of bytes, as with debug.force-spill.
    """
    wanted = max(2 * build_bytes // (page_limit * page_size), 2 * memories) + 2
    return max(2, min(FAN_OUT_MAX, page_limit - 3, wanted))
