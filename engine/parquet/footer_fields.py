"""Fields of a footer as they lie in the file: those of a footer that is made of parts of others.

    fields = fields_of(footer)           of Arrow's footer; a struct is a dict of Field(kind, value) by numbers
    footer_of(fields) -> footer          Arrow's again
    file_end(fields) -> bytes            what a file ends with: the footer, its length and the magic

Arrow has no call that makes a footer of row groups whose columns lie elsewhere than they were written.

Source: Apache Thrift, "Thrift Compact protocol encoding".
Held by: tests/parquet/test_spliced_file.py
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

_MAGIC: Final = b"PAR1"
_TRUE, _FALSE, _BYTE, _I16, I32, I64, _DOUBLE, _BINARY, LIST, _SET, _MAP, STRUCT = range(1, 13)
#: elements of a list whose number does not fit beside their kind
_LONG_LIST: Final = 15


class Field(NamedTuple):
    """A value and the kind that it is written as; of a list or a set: the kind of elements and these."""

    kind: int
    value: Any


Struct: TypeAlias = dict[int, Field]


def fields_of(footer: pq.FileMetaData) -> Struct:
    """Return the fields of a footer."""
    sink = pa.BufferOutputStream()
    footer.write_metadata_file(sink)
    return _Reader(sink.getvalue().to_pybytes(), len(_MAGIC)).struct()


def file_end(fields: Struct) -> bytes:
    """Return the end of a file with a footer."""
    out = bytearray()
    _put_struct(out, fields)
    return bytes(out) + struct.pack("<I", len(out)) + _MAGIC


def footer_of(fields: Struct) -> pq.FileMetaData:
    """Return a footer as Arrow has it."""
    return pq.read_metadata(pa.BufferReader(_MAGIC + file_end(fields)))


class _Reader:
    """Takes values from bytes, one after the other."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position

    def struct(self) -> Struct:
        """Return the next struct."""
        found: Struct = {}
        number = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            number = number + step if step else self._zigzag()
            found[number] = Field(kind, kind == _TRUE if kind <= _FALSE else self._value(kind))
        return found

    def _byte(self) -> int:
        self._position += 1
        return self._data[self._position - 1]

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7

    def _zigzag(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)

    def _bytes(self, size: int) -> bytes:
        self._position += size
        return self._data[self._position - size : self._position]

    def _value(self, kind: int) -> Any:
        match kind:
            case 3 | 1 | 2:  # within a list a bool is a byte, too
                return self._byte()
            case 4 | 5 | 6:
                return self._zigzag()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._varint())
            case 9 | 10:
                head = self._byte()
                count = head >> 4 if head >> 4 < _LONG_LIST else self._varint()
                return head & 15, [self._value(head & 15) for _ in range(count)]
            case 12:
                return self.struct()
        raise ValueError(f"a footer with a value of the kind {kind} of Thrift")


def _put_struct(out: bytearray, fields: Struct) -> None:
    before = 0
    for number, field in sorted(fields.items()):
        kind = field.kind if field.kind > _FALSE else _TRUE if field.value else _FALSE
        if 0 < number - before < 16:
            out.append((number - before) << 4 | kind)
        else:
            out.append(kind)
            _put_zigzag(out, number)
        if kind > _FALSE:
            _put(out, kind, field.value)
        before = number
    out.append(0)


def _put_varint(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _put_zigzag(out: bytearray, number: int) -> None:
    _put_varint(out, number << 1 if number >= 0 else (-number << 1) - 1)


def _put(out: bytearray, kind: int, value: Any) -> None:
    match kind:
        case 3 | 1 | 2:
            out.append(value)
        case 4 | 5 | 6:
            _put_zigzag(out, value)
        case 7:
            out += value
        case 8:
            _put_varint(out, len(value))
            out += value
        case 9 | 10:
            of, values = value
            if len(values) < _LONG_LIST:
                out.append(len(values) << 4 | of)
            else:
                out.append(_LONG_LIST << 4 | of)
                _put_varint(out, len(values))
            for each in values:
                _put(out, of, each)
        case 12:
            _put_struct(out, value)
