"""Sizes of subpartitions as bytes: eight for each, little-endian, in place of a number object.

    packed_sizes([3, 0, 7]) ─► bytes of 24 ─► in a report, and kept by the JobMaster ─► sizes_of(packed)[2]

There is one for each subpartition of each stored result: with a thousand producers and consumers, a million.

Held by: tests/graph/test_packed_sizes.py
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence


def packed_sizes(sizes: Iterable[int]) -> bytes:
    """Return sizes as bytes."""
    return _little(sizes if isinstance(sizes, array) else array("Q", sizes)).tobytes()


def sizes_of(packed: bytes) -> Sequence[int]:
    """Return the sizes, which lie in the bytes."""
    if sys.byteorder == "little":
        return memoryview(packed).cast("Q")
    return _little(array("Q", packed))


def _little(sizes: array[int]) -> array[int]:
    if sys.byteorder != "little":
        sizes = sizes[:]
        sizes.byteswap()
    return sizes
