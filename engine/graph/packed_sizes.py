"""Sizes of subpartitions as bytes: eight for each, little-endian, in place of a number object.

    packed_sizes([3, 0, 7]) ─► bytes of 24 ─► in a report ─► kept_sizes(packed) ─► a KeptSizes of 3 bytes ─► sizes()[2]

There is one for each subpartition of each stored result: with a thousand producers and consumers, a million. The
JobMaster keeps them in the fewest bytes that hold the largest of a result, and as long as the result is there.

Held by: tests/graph/test_packed_sizes.py
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

_Code = Literal["B", "H", "I", "Q"]
#: codes of unsigned numbers, and their bytes
_CODES: Final[tuple[tuple[_Code, int], ...]] = (("B", 1), ("H", 2), ("I", 4), ("Q", 8))


def packed_sizes(sizes: Iterable[int]) -> bytes:
    """Return sizes as bytes."""
    return _little(sizes if isinstance(sizes, array) else array("Q", sizes)).tobytes()


def sizes_of(packed: bytes) -> Sequence[int]:
    """Return the sizes, which lie in the bytes."""
    if sys.byteorder == "little":
        return memoryview(packed).cast("Q")
    return _little(array("Q", packed))


class KeptSizes(msgspec.Struct, frozen=True, gc=False):
    """The sizes of one result's subpartitions, ``code`` as ``array`` has it."""

    code: _Code
    packed: bytes

    def sizes(self) -> Sequence[int]:
        """Return the sizes, which lie in the bytes."""
        return memoryview(self.packed).cast(self.code)


def kept_sizes(packed: bytes) -> KeptSizes:
    """Return reported sizes in the fewest bytes each."""
    zeros = bytes(len(packed) // 8)
    highest = next((byte for byte in range(7, 0, -1) if packed[byte::8] != zeros), 0)
    if not highest:
        return KeptSizes("B", packed[::8])
    code, width = next((code, width) for code, width in _CODES if highest < width)
    low = memoryview(packed).cast(code)[:: 8 // width].tobytes()
    return KeptSizes(code, _little(array(code, low)).tobytes())


def _little(sizes: array[int]) -> array[int]:
    if sys.byteorder != "little":
        sizes = sizes[:]
        sizes.byteswap()
    return sizes
