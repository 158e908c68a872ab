"""IndexSet: a set of subtasks of one vertex, a bit for each.

There is one for each stored result: with thousands of subtasks on both sides sets of numbers would be hundreds of MB.

Held by: tests/jobmaster/test_execution_edges.py
"""

from __future__ import annotations

from collections.abc import Iterator


class IndexSet:
    """A set of small numbers."""

    __slots__ = ("_bits",)

    def __init__(self) -> None:
        self._bits = 0

    def add(self, index: int) -> None:
        """Have a number in it."""
        self._bits |= 1 << index

    def discard(self, index: int) -> None:
        """Have a number not in it."""
        self._bits &= ~(1 << index)

    def __len__(self) -> int:
        return self._bits.bit_count()

    def __contains__(self, index: int) -> bool:
        return bool(self._bits >> index & 1)

    def __iter__(self) -> Iterator[int]:
        return (index for index in range(self._bits.bit_length()) if index in self)
