"""Files that are written in blocks: Arrow IPC (file and stream), ORC, Avro; opened, and their blocks as batches.

    open_blocks("orc", path) -> BlockFile         .schema  .block_count  .row_count
    file.batches(start, end) ──► record batches   of blocks [start, end): record batches, stripes, blocks of rows

    format   block           a split is        columns that are not wanted
    ipc      record batch    some batches      are not read
             (stream)        the whole file    are not read
    orc      stripe          a stripe          are not read
    avro     block           the whole file    are passed over

A block is in memory whole. Avro's rows become Python objects on their way: fastavro, an extra of the package, has no
columns. What comes out of IPC is checked in full, since Arrow believes the offsets in a file.

Held by: tests/connectors/test_block_files.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

from engine.errors import DataError, PlanError
from engine.files.native_files import native_file, path_or_stream
from engine.storage.file_systems import file_system_of

_IPC_MAGIC: Final = b"ARROW1"


class BlockFile(Protocol):
    """An open file."""

    schema: pa.Schema
    #: blocks that can be read by themselves; 0: only all of them, in order
    block_count: int
    #: None: not known without reading
    row_count: int | None

    def batches(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of blocks, with the columns that were asked for and maybe more."""
        ...

    def close(self) -> None:
        """Close the file; idempotent."""
        ...


def open_blocks(file_format: str, path: str, columns: Sequence[str] | None = None) -> BlockFile:
    """Open a file for some of its columns, None: all.

    Raises: PlanError: it is none of this format; DataError: damaged.
    """
    try:
        if file_format == "ipc":
            return _open_ipc(path, columns)
        if file_format == "orc":
            return OrcBlocks(path, columns)
        from engine.connectors.avro_blocks import AvroBlocks

        return AvroBlocks(path, columns)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise PlanError(f"read_{file_format}: {path} is not a whole {file_format} file ({reason_of(error)})") from None


def reason_of(error: Exception) -> str:
    """Return the first line of what a library says."""
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__


def _open_ipc(path: str, columns: Sequence[str] | None) -> BlockFile:
    with file_system_of(path).open_stream(path, is_buffered=True) as file:
        is_file = file.read(len(_IPC_MAGIC)) == _IPC_MAGIC
    return IpcBlocks(path, columns) if is_file else IpcStreamBlocks(path, columns)


def _options(schema: pa.Schema, columns: Sequence[str] | None) -> pa.ipc.IpcReadOptions:
    if columns is None:
        return pa.ipc.IpcReadOptions(use_threads=False)
    # Without columns there are rows all the same: one column tells how many.
    wanted = [index for index, name in enumerate(schema.names) if name in columns] or [0]
    return pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    batch.validate(full=True)
    return batch


class IpcBlocks:
    """An Arrow IPC file, Feather 2 by another name."""

    def __init__(self, path: str, columns: Sequence[str] | None) -> None:
        self._file = native_file(path)
        try:
            reader = pa.ipc.open_file(self._file)
            self.schema = reader.schema
            self.block_count = reader.num_record_batches
            self._reader = (
                reader if columns is None else pa.ipc.open_file(self._file, options=_options(reader.schema, columns))
            )
        except BaseException:
            self._file.close()
            raise
        self.row_count: int | None = None

    def batches(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield record batches."""
        for index in range(start, end):
            yield _checked(self._reader.get_batch(index))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class IpcStreamBlocks:
    """An Arrow IPC stream in a file."""

    block_count = 0
    row_count: int | None = None

    def __init__(self, path: str, columns: Sequence[str] | None) -> None:
        self._file = native_file(path)
        try:
            reader = pa.ipc.open_stream(self._file)
            self.schema = reader.schema
            if columns is not None:
                self._file.seek(0)
                reader = pa.ipc.open_stream(self._file, options=_options(self.schema, columns))
            self._reader = reader
        except BaseException:
            self._file.close()
            raise

    def batches(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield all record batches."""
        yield from map(_checked, self._reader)
        if self._file.tell() == self._file.size():
            return
        raise DataError(f"there are bytes behind the end of the stream, from {self._file.tell()} on")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class OrcBlocks:
    """An ORC file."""

    def __init__(self, path: str, columns: Sequence[str] | None) -> None:
        from pyarrow import orc

        self._file: Any = orc.ORCFile(path_or_stream(path))
        self.schema = self._file.schema
        self.block_count = self._file.nstripes
        self.row_count: int | None = self._file.nrows
        # Without columns there are rows all the same: one column tells how many.
        self._columns = None if columns is None else list(columns) or self.schema.names[:1]

    def batches(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield stripes."""
        for index in range(start, end):
            yield self._file.read_stripe(index, columns=self._columns)

    def close(self) -> None:
        """Give the file back."""
        self._file = None
