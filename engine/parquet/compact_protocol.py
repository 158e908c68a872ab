"""Thrift's compact protocol, as far as headers of Parquet pages need it.

    reader = CompactReader(data)
    for number, value in reader.fields(): ...     one after the other: who needs the first ones takes no more
    reader.struct()                               all of them, number to value

    field     4 bits step to the next number │ 4 bits kind │ value          0 ends a struct
    value     integers as zigzag varints, a struct as its fields; what is no number is passed over (None)

Where the bytes end first it is an IndexError: there may be more of them. What cannot be right is pa.ArrowInvalid.
Source: Apache Thrift, "Thrift compact protocol encoding".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS: Final = (4, 5, 6)
#: bytes of what is passed over; a bool has one in a list, and none as a field, where its kind says it
_SIZES: Final = {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8}
#: a header has structs of two levels; damaged bytes may seem to have thousands
_DEPTH_MAX: Final = 16
_SHIFT_MAX: Final = 63


class CompactReader:
    """Reads from the beginning of some bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields of a struct."""
        return dict(self.fields(depth))

    def fields(self, depth: int = 0) -> Iterator[tuple[int, Any]]:
        """Yield numbers and values of the fields of a struct."""
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            yield number, kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)

    def varint(self) -> int:
        """Return a number without sign."""
        value = shift = 0
        while (byte := self._byte()) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > _SHIFT_MAX:
                raise pa.ArrowInvalid("a number of more than 64 bits")
        return value | byte << shift

    def _byte(self) -> int:
        self.position += 1
        return self._data[self.position - 1]

    def _zigzag(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def _skip(self, size: int) -> None:
        self.position += size
        if self.position > len(self._data):
            raise IndexError("the bytes end before the value does")

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEPTH_MAX:
            raise pa.ArrowInvalid(f"structs within structs, more than {_DEPTH_MAX}")
        if kind in _INTEGERS:
            return self._zigzag()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in _SIZES:
            self._skip(_SIZES[kind])
            return None
        if kind == _BINARY:
            self._skip(self.varint())
            return None
        if kind in (_LIST, _SET):
            head = self._byte()
            for _ in range(head >> 4 if head >> 4 != 15 else self.varint()):
                self._value(head & 15, depth + 1)
            return None
        raise pa.ArrowInvalid(f"a field of the unknown kind {kind}")
