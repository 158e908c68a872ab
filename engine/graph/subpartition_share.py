"""SubpartitionShare: which portion of one subpartition, over all producers, a consumer reads.

    producer        0                    1                    2
    position   0 ─────── PARTS ──────────────── 2 * PARTS ──────────── 3 * PARTS
                     │ share of one consumer      │ of the next one                  shares lie side by side

Positions do not depend on how much a producer stored: whatever another attempt of it stores, shares that lie side by
side hold each of its rows once. Within one producer a part [begin, end) of PARTS is turned into buffers where they lie.

Plain data. Source: the subpartition slices of Flink's adaptive skewed join (FLIP-475), which its JobMaster cuts by
bytes.

Held by: tests/adaptive/test_skew.py
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.graph.exact import Exact

#: number of parts into which a producer's subpartition can be cut
PARTS: Final = 1 << 16
#: the whole subpartition
WHOLE: Final = (0, PARTS)


class SubpartitionShare(Exact, frozen=True):
    """The positions [begin, end) of a subpartition."""

    subpartition: int
    begin: int
    end: int

    def part_of(self, producer: int) -> tuple[int, int]:
        """Return the part of what one producer stored; empty when begin is not below end."""
        return max(0, self.begin - producer * PARTS), min(PARTS, self.end - producer * PARTS)


def whole_share(subpartition: int, producers: int) -> SubpartitionShare:
    """Return all of a subpartition."""
    return SubpartitionShare(subpartition, 0, producers * PARTS)


def are_complete(shares: Iterable[SubpartitionShare], subpartitions: int, producers: int) -> bool:
    """Whether each subpartition is read: in shares side by side, or whole, then perhaps by several."""
    found: list[set[tuple[int, int]]] = [set() for _ in range(subpartitions)]
    cut_count = 0
    for share in shares:
        if not 0 <= share.subpartition < subpartitions:
            return False
        found[share.subpartition].add((share.begin, share.end))
        cut_count += share.end - share.begin < producers * PARTS
    whole = {(0, producers * PARTS)}
    cut = [sorted(each) for each in found if each != whole]
    return cut_count == sum(map(len, cut)) and all(_are_adjacent(each, producers * PARTS) for each in cut)


def _are_adjacent(cuts: list[tuple[int, int]], end: int) -> bool:
    reached = 0
    for begin, until in cuts:
        if begin != reached or until <= begin:
            return False
        reached = until
    return reached == end
