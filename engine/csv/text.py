"""The text of a CSV file as it is read: UTF-8 or a superset of ASCII, from the first record on, without comments.

    with open_csv(spec, path) as file:          read, readinto, seek and tell, in bytes of the text
        begin = begin_of(spec, file)            behind the byte order mark, and the lines that are skipped
    is_stream(spec, path)                       whether it is to be read from its begin to its end, by one subtask
    lines_left_out(file, position)              lines of the file that are before a position, and not in the text

    # made by a probe        skip_rows=1                 a line of the file, whatever is in it
    time,value               the header
    # warming up             comment="#"                 a line that begins so, outside of quotes
    1,"two
    # lines"                                             a value: it begins within quotes

A file with comments is a stream: where they are is known from its begin only.

Held by: tests/integration/test_csv_options.py
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from typing import Any, BinaryIO, Final, cast

from engine.csv.dialect import BYTE_ORDER_MARK, CsvDialect
from engine.csv.scan import RecordScanner
from engine.files.compression import ReadableText, codec_of, open_text
from engine.graph.source_spec import CsvSource
from engine.memory.budget import process_budget

_PIECE_BYTES: Final = 256 << 10
_LINE_END: Final = re.compile(rb"\r\n?|\n")


def is_stream(spec: CsvSource, path: str) -> bool:
    """Return whether a file cannot be read from anywhere but its begin."""
    return bool(spec.comment or codec_of(path, spec.compression))


def open_csv(spec: CsvSource, path: str) -> BinaryIO:
    """Open the text of a file of a source."""
    codec = codec_of(path, spec.compression)
    if not spec.comment:
        return open_text(path, codec)
    return cast(BinaryIO, ReadableText(path, codec, partial(_WithoutComments, spec)))


def begin_of(spec: CsvSource, file: BinaryIO) -> int:
    """Go to the first record, and return its position."""
    begin = len(BYTE_ORDER_MARK)
    if file.read(begin) != BYTE_ORDER_MARK:
        begin = file.seek(0)
    if spec.comment:
        return begin  # skipped lines are not in the text
    return file.seek(_behind_lines(file, begin, spec.skip_rows)) if spec.skip_rows else begin


def _behind_lines(file: BinaryIO, position: int, count: int) -> int:
    """Return the position behind so many lines, of a file that stands at one; the end where there are fewer."""
    left = count
    while data := file.read(_PIECE_BYTES):
        if data.endswith(b"\r"):
            data += file.read(1)
        for found in _LINE_END.finditer(data):
            left -= 1
            if not left:
                return position + found.end()
        position += len(data)
    return position


def begins(spec: CsvSource, paths: Sequence[str], size: int) -> list[tuple[str, bytes]]:
    """Return path and begin of the text of each file."""
    found = []
    for path in paths:
        with open_csv(spec, path) as file:
            begin_of(spec, file)
            found.append((path, file.read(size)))
    return found


def lines_left_out(file: BinaryIO | None, position: int) -> int:
    """Return the number of lines of a file before a position of its text that are not in it."""
    stage = file.last_stage if isinstance(file, ReadableText) else None
    return stage.lines_before(position) if isinstance(stage, _WithoutComments) else 0


class _WithoutComments:
    """A text without its first lines, and without lines that begin with a mark outside of quotes."""

    def __init__(self, spec: CsvSource, file: Any) -> None:
        dialect = CsvDialect.of(spec.delimiter, spec.quote)
        self._file = file
        self._scanner = RecordScanner(dialect.delimiter, dialect.quote)
        self._comment = re.compile(rb"(?m)^" + re.escape(spec.comment.encode()))
        self._skip = spec.skip_rows
        #: text that is ready, and the begin of a line that is not whole
        self._ready = memoryview(b"")
        self._rest = b""
        self._is_begun = self._is_ended = False
        #: bytes of text given out or ready, and where in it each line that is left out was
        self._size = 0
        self._left_out: list[int] = []

    def lines_before(self, position: int) -> int:
        """Return the number of skipped lines before a position."""
        return bisect_right(self._left_out, position)

    def readinto(self, target: memoryview) -> int:
        """Read text; 0 at its end."""
        while not self._ready and not self._is_ended:
            self._ready = memoryview(self._next())
            self._size += len(self._ready)
        taken, self._ready = self._ready[: len(target)], self._ready[len(target) :]
        target[: len(taken)] = taken
        return len(taken)

    def _next(self) -> bytes:
        """Return the text of the next whole lines."""
        piece = bytearray(_PIECE_BYTES)
        size = self._file.readinto(memoryview(piece))
        self._is_ended = not size
        data = self._rest + piece[:size]
        if not self._is_begun and (len(data) >= len(BYTE_ORDER_MARK) or self._is_ended):
            self._is_begun, data = True, data.removeprefix(BYTE_ORDER_MARK)
        cut = len(data) if self._is_ended else data.rfind(b"\n") + 1
        process_budget.check_record(len(data) - cut, "a line of a file that is read without comments")
        lines, self._rest = bytes(data[:cut]), bytes(data[cut:])
        return self._without_comments(self._without_first(lines))

    def _without_first(self, lines: bytes) -> bytes:
        at = 0
        while self._skip and at < len(lines):
            found = _LINE_END.search(lines, at)
            at = found.end() if found else len(lines)
            self._skip -= 1
            self._left_out.append(self._size)
        return lines[at:]

    def _without_comments(self, lines: bytes) -> bytes:
        kept, at, size = list[bytes](), 0, self._size
        for found in self._comment.finditer(lines):
            if found.start() < at:
                continue
            part = lines[at : found.start()]
            self._scanner.advance(part)
            at = found.start()
            kept.append(part)
            size += len(part)
            if not self._scanner.is_quoted:
                at = lines.find(b"\n", at) + 1 or len(lines)
                self._left_out.append(size)
        if not kept:
            self._scanner.advance(lines)
            return lines
        self._scanner.advance(lines[at:])
        return b"".join([*kept, lines[at:]])
