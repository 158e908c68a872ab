"""Blocks of whole lines: of a part of a file, or of a stream whose end is only known when it is there.

    line_start(file, position, size)            where the first line begins at or behind a position
    line_blocks(file, begin, end, block_bytes)  (position, bytes) of whole lines in [begin, end), end None: all there is

    file     first LF second LF third line is long LF fourth
    splits   |-----------------|---------------|-----------|     cut anywhere
    blocks   |  first second   |  third        |  fourth   |     a line is read by the split in which it begins

A line that is longer than a block makes the block longer, and is checked against what a process has for a record.

Held by: tests/connectors/test_text.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from engine.errors import DataError
from engine.files.compression import open_text
from engine.memory.budget import process_budget

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_CHUNK_BYTES: Final = 1 << 20


def line_start(file: BinaryIO, position: int, size: int, chunk_bytes: int = _CHUNK_BYTES) -> int:
    """Return the begin of the first line at or behind a position; the size when there is none."""
    if position == 0:
        file.seek(0)
        return len(BYTE_ORDER_MARK) if file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK else 0
    position -= 1
    file.seek(position)
    while position < size and (data := file.read(chunk_bytes)):
        found = data.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(data)
    return size


def line_blocks(
    file: BinaryIO, begin: int, end: int | None, block_bytes: Callable[[], int]
) -> Iterator[tuple[int, bytes]]:
    """Yield (position, whole lines) of [begin, end), which begins with one and ends behind one, or with the file.

    Raises: DataError: the file ends before; MemoryBudgetError: a line for which no process of this size has room.
    """
    file.seek(begin)
    position, pieces, held_bytes = begin, list[bytes](), 0
    while end is None or position + held_bytes < end:
        wanted = block_bytes() if end is None else min(block_bytes(), end - position - held_bytes)
        data = file.read(wanted)
        if not data:
            if end is not None:
                missing = end - position - held_bytes
                raise DataError(f"file {file.name}: ends {missing} bytes early; it changed meanwhile")
            break
        is_last = position + held_bytes + len(data) == end
        cut = len(data) if is_last else data.rfind(b"\n") + 1
        if not cut:
            pieces.append(data)
            held_bytes += len(data)
            process_budget.check_record(held_bytes, f"file {file.name}: the line at byte {position} of its text,")
            continue
        block = b"".join([*pieces, data[:cut]])
        yield position, block
        position += len(block)
        pieces, held_bytes = [data[cut:]], len(data) - cut
    if held_bytes:
        yield position, b"".join(pieces)


def count_line_ends_before(path: str, codec: str, position: int) -> int:
    """Return the number of a file's lines that end before a position of its text."""
    count = 0
    with open_text(path, codec) as file:
        while position > 0 and (data := file.read(min(position, _CHUNK_BYTES))):
            count += data.count(b"\n")
            position -= len(data)
    return count
