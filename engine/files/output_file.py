"""OutputFile: the new file of a text sink, written without a buffer in between; with a codec, as a stream of it.

write(view)* ─► close()     size_bytes are in it
write(view)* ─► abort()     it is gone; what was closed stays

Held by: tests/connectors/test_sinks.py
Held by: tests/files/test_compression.py
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from typing import Any, Final, Protocol

import lz4.frame
import pyarrow as pa

from engine.storage.file_systems import file_system_of

#: compression level of gzip, the tool's default; that of xz is low, since each level doubles the memory
_GZIP_LEVEL: Final = 6
_XZ_LEVEL: Final = 2
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
#: bytes of text that are compressed at a time
_PIECE_BYTES: Final = 1 << 20


class _Compressor(Protocol):
    def compress(self, data: memoryview, /) -> bytes:
        """Return the compressed bytes that are ready."""
        ...

    def flush(self) -> bytes:
        """Return the rest."""
        ...


class _Lz4:
    """Frames of lz4, with checksums of their contents."""

    def __init__(self) -> None:
        self._frame = lz4.frame.LZ4FrameCompressor(content_checksum=True)
        self._begin = self._frame.begin()

    def compress(self, data: memoryview, /) -> bytes:
        """Return the compressed bytes that are ready."""
        begin, self._begin = self._begin, b""
        return bytes(begin + self._frame.compress(data))

    def flush(self) -> bytes:
        """Return the rest."""
        return bytes(self._begin + self._frame.flush())


class _Ready(io.RawIOBase):
    """The compressed bytes of an Arrow stream, until they are taken."""

    def __init__(self) -> None:
        super().__init__()
        self._held = bytearray()

    def writable(self) -> bool:
        """Return whether it can be written."""
        return True

    def write(self, data: Any, /) -> int:
        """Hold bytes."""
        self._held += data
        return len(data)

    def taken(self) -> bytes:
        """Return the held bytes, and hold none."""
        held, self._held = self._held, bytearray()
        return bytes(held)


class _Zstd:
    """A frame of zstd."""

    def __init__(self) -> None:
        self._ready = _Ready()
        self._stream = pa.CompressedOutputStream(pa.PythonFile(self._ready, "w"), "zstd")

    def compress(self, data: memoryview, /) -> bytes:
        """Return the compressed bytes that are ready."""
        self._stream.write(data)
        return self._ready.taken()

    def flush(self) -> bytes:
        """Return the rest."""
        self._stream.close()
        return self._ready.taken()


def _compressor(codec: str) -> _Compressor:
    match codec:
        case "gzip":
            return zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_WINDOW)
        case "bz2":
            return bz2.BZ2Compressor()
        case "xz":
            return lzma.LZMACompressor(preset=_XZ_LEVEL)
        case "lz4":
            return _Lz4()
        case "zstd":
            return _Zstd()
    raise ValueError(codec)


class OutputFile:
    """Creates the file; FileExistsError when there is one."""

    def __init__(self, path: str, codec: str = "") -> None:
        self._compressor = _compressor(codec) if codec else None
        self._file = file_system_of(str(path)).create(str(path))
        self.size_bytes = 0

    def write(self, view: memoryview) -> None:
        """Append all of it; the system may take it in pieces."""
        if self._compressor is None:
            self._put(view)
            return
        view = memoryview(view).cast("B")
        for start in range(0, len(view), _PIECE_BYTES):
            self._put(memoryview(self._compressor.compress(view[start : start + _PIECE_BYTES])))

    def _put(self, view: memoryview) -> None:
        self.size_bytes += len(view)
        while view:
            view = view[self._file.write(view) or 0 :]

    def close(self) -> None:
        """Keep the written bytes; idempotent."""
        if self._compressor is not None:
            compressor, self._compressor = self._compressor, None
            self._put(memoryview(compressor.flush()))
        self._file.close()

    def abort(self) -> None:
        """Close and remove the file, unless it is closed."""
        if not self._file.closed:
            self._compressor = None
            self._file.abort()
