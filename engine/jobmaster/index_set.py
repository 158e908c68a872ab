"""IndexSet: a set of subtasks of one vertex, a bit for each.

There is one for each stored result: with thousands of subtasks on both sides sets of numbers would be hundreds of MB.

Held by: tests/jobmaster/test_execution_edges.py
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class IndexSet(msgspec.Struct, eq=False, gc=False):
    """A set of small numbers."""

    bits: int = 0

    def add(self, index: int) -> None:
        """Have a number in it."""
        self.bits |= 1 << index

    def discard(self, index: int) -> None:
        """Have a number not in it."""
        self.bits &= ~(1 << index)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __contains__(self, index: int) -> bool:
        return bool(self.bits >> index & 1)

    def __iter__(self) -> Iterator[int]:
        return (index for index in range(self.bits.bit_length()) if index in self)
