"""Headers of pages by a parser of Thrift's compact protocol that shares nothing with the engine's."""

from typing import NamedTuple

DICTIONARY = 2
_NUMBERS = (4, 5, 6)
_NO_BYTES, _BYTES = (1, 2), {3: 1, 7: 8}


class PageHeader(NamedTuple):
    """Where its page begins, and what it says."""

    position: int
    kind: int
    size_bytes: int
    compressed_bytes: int
    value_count: int


class _Reader:
    def __init__(self, data):
        self.data, self.position = data, 0

    def take(self, count=1):
        self.position += count
        if self.position > len(self.data):
            raise EOFError
        return self.data[self.position - count : self.position]

    def varint(self):
        value = shift = 0
        while (byte := self.take()[0]) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def value(self, kind):
        if kind in _NUMBERS:
            return self.zigzag()
        if kind in _BYTES:
            return self.take(_BYTES[kind])
        if kind == 8:
            return self.take(self.varint())
        if kind == 12:
            return self.struct()
        raise EOFError  # lists and the like are in no header

    def struct(self):
        fields, number = {}, 0
        while head := self.take()[0]:
            number = number + (head >> 4) if head >> 4 else self.zigzag()
            kind = head & 15
            fields[number] = kind == 1 if kind in _NO_BYTES else self.value(kind)
        return fields


def page_headers(data, begin, value_count):
    """Yield the headers of a column's pages; EOFError where there is none."""
    position = begin
    while value_count > 0:
        reader = _Reader(data[position : position + (64 << 10)])
        fields = reader.struct()
        about = fields.get({0: 5, 2: 7, 3: 8}.get(fields.get(1), 0))
        count = about.get(1, 0) if isinstance(about, dict) else 0
        if not all(isinstance(fields.get(field), int) for field in (1, 2, 3)):
            raise EOFError
        page = PageHeader(position + reader.position, fields[1], fields[2], fields[3], count)
        yield page
        value_count -= 0 if page.kind == DICTIONARY else max(1, count)
        position = page.position + page.compressed_bytes
