"""Long records: the length of a record that does not end within a block, found before memory is reserved.

find_long_record(file, begin, end, dialect) ──► LongRecord      one pass over its bytes, a chunk at a time
read_exactly(file, position, target)

block  ├── 1 MiB, no end of the record ──┤
record ├── size_bytes ──────────────────────────────────┤       read again, into memory of just this size
"""

from __future__ import annotations

from typing import BinaryIO, Final, NamedTuple

from engine.csv.dialect import CsvDialect
from engine.csv.scan import RecordScanner
from engine.errors import DataError

_CHUNK_BYTES: Final = 1 << 20


class LongRecord(NamedTuple):
    """A record of a file."""

    size_bytes: int
    #: False: a quote of it opens that none closes, and so it goes on to the end
    is_closed: bool


def find_long_record(file: BinaryIO, begin: int, end: int, dialect: CsvDialect) -> LongRecord:
    """Return the record that begins at a position and ends at ``end`` at the latest."""
    scanner = RecordScanner(dialect.delimiter, dialect.quote)
    chunk = memoryview(bytearray(min(_CHUNK_BYTES, end - begin)))
    position = begin
    while position < end:
        part = chunk[: end - position]
        read_exactly(file, position, part)
        found = scanner.next_record_end(part)
        if found >= 0:
            return LongRecord(position + found - begin, is_closed=True)
        position += len(part)
    return LongRecord(end - begin, is_closed=not scanner.is_quoted)


def read_exactly(file: BinaryIO, position: int, target: memoryview) -> None:
    """Fill the target; DataError where the file ends before."""
    file.seek(position)
    used = 0
    while used < len(target):
        count = file.readinto(target[used:])  # type: ignore[attr-defined]
        if not count:
            raise DataError(f"file {file.name}: ends {len(target) - used} bytes early; it changed while it was read")
        used += count
