"""Files as pyarrow reads and writes them: its own where the file system has a path for it, else streams.

    native_file(path)                   random access
    mapped_file(path)                   the same, whose buffers are the file's pages where it can be mapped
    native_output(path)                 a new file; FileExistsError when there is one
    path_or_stream(path)                for what takes either

Of a stream every buffer is copied, so a file system that has paths is read at the speed of the library.

Held by: tests/files/test_native_files.py
"""

from __future__ import annotations

import io
from typing import Any, BinaryIO, cast

import pyarrow as pa

from engine.storage.file_systems import file_system_of


def native_file(path: str) -> pa.NativeFile:
    """Open a file for reading."""
    native = file_system_of(path).native_path(path)
    return pa.PythonFile(_stream(path), "r") if native is None else pa.OSFile(native)


def mapped_file(path: str) -> pa.NativeFile:
    """Open a file for reading whose pages are mapped, where that is possible."""
    native = file_system_of(path).native_path(path)
    return pa.PythonFile(_stream(path), "r") if native is None else pa.memory_map(native)


def native_output(path: str) -> pa.NativeFile:
    """Create a file; FileExistsError when there is one."""
    files = file_system_of(path)
    stream, native = files.create(path), files.native_path(path)
    if native is None:
        return pa.PythonFile(buffered_output(stream), "w")
    stream.close()
    return pa.OSFile(native, "wb")


def buffered_output(stream: Any) -> BinaryIO:
    """Return a stream of parts as one that takes all that it is given."""
    return cast(BinaryIO, io.BufferedWriter(stream))


def path_or_stream(path: str) -> str | BinaryIO:
    """Return the path if a library can open it, else a stream."""
    native = file_system_of(path).native_path(path)
    return _stream(path) if native is None else native


def _stream(path: str) -> BinaryIO:
    return file_system_of(path).open_stream(path, is_buffered=True)
