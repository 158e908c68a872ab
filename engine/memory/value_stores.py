"""The stores of wide values in this process, by number: what references in rows (``records.outside_values``) lead to.

    number = register(store)      find(number).read_value(...)      forget(number)
                                  find(number).open_value(...).read_block(index, into)
    place = owner.find_value(value, value_hash) or owner.write_value(value, value_hash)      read_back(place, into)

The writer of rows knows its store; a reader of them knows only the number in a reference.

Held by: tests/iomanager/test_value_store.py
"""

from __future__ import annotations

import itertools
from typing import Final, Protocol

from engine.errors import CorruptBlockError

#: bytes of a value that are read and checked at once
BLOCK_BYTES: Final = 256 << 10
#: place of a value: number of the store, number of the file, offset, checksum
Place = tuple[int, int, int, int]


class ValueOwner(Protocol):
    """Takes wide values of rows."""

    def find_value(self, value: memoryview, value_hash: int) -> Place | None:
        """Return the place of an equal value that is stored already; None: it is to be written."""
        ...

    def write_value(self, value: memoryview, value_hash: int | None = None) -> Place:
        """Write a value; return where it is. Args: value_hash: of the value, None: it is not to be found again."""
        ...


class ValueStore(Protocol):
    """Gives wide values back."""

    def read_value(self, file: int, offset: int, checksum: int, into: memoryview) -> None:
        """Read a value of len(into) bytes; CorruptBlockError when it is not what was written."""
        ...

    def open_value(self, file: int, offset: int, size: int, checksum: int) -> StoredValue:
        """Return a value of so many bytes, to be read block by block; CorruptBlockError when it is none."""
        ...


class StoredValue(Protocol):
    """One value of a store."""

    def read_block(self, index: int, into: memoryview) -> None:
        """Read block ``index`` of BLOCK_BYTES, the last one shorter; CorruptBlockError as read_value."""
        ...


_numbers = itertools.count(1)
_stores: dict[int, ValueStore] = {}


def register(store: ValueStore) -> int:
    """Make a store readable; returns its number, part of the references to it."""
    number = next(_numbers) & 0xFFFF_FFFF
    _stores[number] = store
    return number


def find(number: int) -> ValueStore | None:
    """Return a store, None when it has been forgotten."""
    return _stores.get(number)


def read_back(place: Place, into: memoryview) -> None:
    """Read a value of len(into) bytes that an owner wrote; CorruptBlockError when its file is gone or damaged."""
    number, file, offset, checksum = place
    store = find(number)
    if store is None:
        raise CorruptBlockError(f"a value of {len(into)} bytes was put aside, and its file is gone")
    store.read_value(file, offset, checksum, into)


def any_open() -> bool:
    """Return whether there is a store: without one no value lies outside of its row."""
    return bool(_stores)


def forget(number: int) -> None:
    """End a store: what it holds cannot be read any more."""
    _stores.pop(number, None)
