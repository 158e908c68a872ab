"""HandedWriter: rows for a client in the same process: the first ones in memory, those beyond a bound in a file.

    task    HandedWriter(schema, path) ─► HandedPart(head, file)      ──► engine.commit.handed_target
    client  handed_batches(part)

Rows are copied into a stream, so that no result keeps the memory that its batches are views of.

Held by: tests/connectors/test_handed_writer.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from engine.commit.handed_target import handed_result
from engine.connectors.arrow_files import arrow_batches
from engine.connectors.arrow_writer import ArrowWriter
from engine.records.arrow_batch import batch_bytes
from engine.storage.file_systems import file_system_of

#: bytes of a part that are kept in memory; a file of so many would be mapped, and a smaller one be copied to memory
HEAD_BYTES_MAX: Final = 1 << 20


class HandedPart(NamedTuple):
    """The rows of one subtask."""

    #: stream of the first rows
    head: pa.Buffer
    #: Arrow file of the rest; "": there is none
    file: str


class HandedWriter:
    """Writes the part of one attempt. ``path``: of its file, in the place of the result."""

    is_full = False

    def __init__(self, schema: pa.Schema, path: str) -> None:
        self._path = path
        self._place, _, self._name = path.rpartition("/")
        self._result = handed_result(self._place)
        self._schema = schema
        self._head = pa.BufferOutputStream()
        self._stream = pa.ipc.new_stream(self._head, schema)
        self._head_rows = 0
        self._rest: ArrowWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if self._rest is None and self._head.tell() + batch_bytes(batch) > HEAD_BYTES_MAX:
            folders = file_system_of(self._place).folders
            assert folders is not None, f"{self._place} is a folder of this machine"
            folders.make(self._place)
            self._rest = ArrowWriter(self._schema, self._path)
        if self._rest is not None:
            self._rest.write(batch)
            return
        self._stream.write_batch(batch)
        self._head_rows += batch.num_rows

    def finish(self) -> tuple[int, int, str]:
        """Stage the part; return (rows, bytes, "")."""
        self._stream.close()
        head = self._head.getvalue()
        rows, size_bytes, statistics = (0, 0, "") if self._rest is None else self._rest.finish()
        self._result.staged[self._name] = HandedPart(head, "" if self._rest is None else self._path)
        return self._head_rows + rows, head.size + size_bytes, statistics

    def abort(self) -> None:
        """Remove the file, unless it is finished."""
        if self._rest is not None:
            self._rest.abort()


def handed_batches(part: HandedPart) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a part."""
    with pa.ipc.open_stream(part.head) as stream:
        yield from stream
    if part.file:
        yield from arrow_batches(part.file)
