"""The streams of a gzip, bz2 or xz file one after the other, as one text: ``cat a.gz b.gz`` is a file of two.

    stream 1 │ stream 2 │ 0 0 0 0          what stands behind a stream is another one, or padding
    PackedStreams(file, "xz").readinto(target) -> bytes of text, 0 at the end

gzip takes any number of zeros as padding (tapes have blocks), xz multiples of four, bz2 none: so the formats and their
tools say. Everything else behind a stream is damage, as within one. (Python's ``lzma`` and ``bz2`` take it for the end
of the file, and Arrow's decompressor refuses padding and an empty stream of bz2.)

Invariant: the end is reported behind the last stream alone; PackedError names the stream that is not whole.
Limits: a piece of PIECE_BYTES of the file is held, and as much text as a call asks for.
Source: RFC 1952, the .xz file format 1.2.1 (section 2.2, stream padding).
Held by: tests/integration/test_packed_streams.py
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import BinaryIO, Final, NamedTuple, Protocol

PIECE_BYTES: Final = 256 << 10
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_DAMAGE: Final = (OSError, EOFError, lzma.LZMAError, zlib.error)


class PackedError(Exception):
    """A stream is damaged, ends early, or is none."""


class _Decompressor(Protocol):
    """The interface of ``bz2.BZ2Decompressor`` and ``lzma.LZMADecompressor``."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Decompress at most so many bytes of text; the rest of the data is kept for the next call."""
        ...


class _Gzip:
    """``zlib.decompressobj`` with the interface of the other two."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_GZIP_WINDOW)
        self._is_filled = False

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        # Where a call has filled its room, zlib may hold text of bytes that it has taken already.
        return not self._is_filled and not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        text = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self._is_filled = len(text) == max_length
        return text


class _Format(NamedTuple):
    """The format of a codec's streams, and the padding behind them: a multiple of so many zeros, 0: none."""

    new: Callable[[], _Decompressor]
    padding: int


_FORMATS: Final[Mapping[str, _Format]] = {
    "gzip": _Format(_Gzip, 1),
    "bz2": _Format(bz2.BZ2Decompressor, 0),
    "xz": _Format(lzma.LZMADecompressor, 4),
}
CODECS: Final = frozenset(_FORMATS)


class PackedStreams:
    """The text of a file that is read front to back."""

    def __init__(self, file: BinaryIO, codec: str) -> None:
        self._file = file
        self._format = _FORMATS[codec]
        self._stream: _Decompressor | None = self._format.new()
        self._number = 1
        #: the place of the stream in the file, and bytes of the file that no stream has taken
        self._begin = file.tell()
        self._ahead = b""

    def readinto(self, target: memoryview) -> int:
        """Read text; 0 at the end of the last stream. Raises: PackedError."""
        while self._stream is not None:
            if self._stream.eof:
                self._next_stream(self._stream.unused_data)
                continue
            data = self._more() if self._stream.needs_input else b""
            if self._stream.needs_input and not data:
                raise PackedError(f"{self._place()}ends early")
            text = self._decompressed(self._stream, data, len(target))
            if text:
                target[: len(text)] = text
                return len(text)
        return 0

    def _decompressed(self, stream: _Decompressor, data: bytes, size: int) -> bytes:
        try:
            return stream.decompress(data, size)
        except _DAMAGE as error:
            reason = str(error).rpartition("decompressing data: ")[2] or type(error).__name__
            raise PackedError(f"{self._place()}{reason}") from error

    def _more(self) -> bytes:
        data, self._ahead = self._ahead or self._file.read(PIECE_BYTES), b""
        return data

    def _next_stream(self, rest: bytes) -> None:
        """Pass padding and begin with the stream behind it, if there is one."""
        zeros = 0
        while data := rest or self._file.read(PIECE_BYTES):
            begun = data.lstrip(b"\0") if self._format.padding else data
            zeros += len(data) - len(begun)
            if begun:
                break
            rest = b""
        if zeros and zeros % self._format.padding:
            raise PackedError(f"{zeros} zeros follow stream {self._number}, which are no padding")
        if not data:
            self._stream = None
            return
        self._ahead, self._begin = begun, self._file.tell() - len(begun)
        self._stream = self._format.new()
        self._number += 1

    def _place(self) -> str:
        return f"stream {self._number}, from byte {self._begin} of the file on: " if self._number > 1 else ""
