"""BlockReader: a task's splits of Arrow IPC, ORC and Avro files as record batches.

    split: blocks [start, end) of a file ──► BlockFile.batches ──► plain types ──► bounded batches

What is damaged is a DataError that names the file, its block and the library's reason.

Held by: tests/connectors/test_block_files.py
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import pyarrow as pa

from engine.connectors.block_files import BlockFile, open_blocks, reason_of
from engine.errors import DataError, EngineError
from engine.graph.source_spec import FormatSource, SourceSplit
from engine.memory.budget import Kind, Role, process_budget
from engine.records.batch_limits import BATCH_ROWS_MAX
from engine.records.bounded_batches import SmallBatches, bounded_batches
from engine.records.plain_types import plain_batch

#: errors of the libraries for damaged bytes
_DAMAGED = (
    pa.ArrowException,
    OSError,
    ValueError,
    EOFError,
    TypeError,
    KeyError,
    IndexError,
    OverflowError,
    zlib.error,
)


class BlockReader:
    """Reads blocks of files."""

    bad_rows = 0
    pruned_groups = 0

    def __init__(self, spec: FormatSource, splits: Sequence[SourceSplit]) -> None:
        self._format = spec.format
        self._columns = list(spec.columns)
        schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
        self._schema = pa.schema([schema.field(name) for name in self._columns])
        self._splits = splits
        self._file: BlockFile | None = None
        self._member = process_budget.reserve(Kind.ARROW, role=Role.READER)
        self.bytes_read = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all splits; DataError for what is damaged."""
        small = SmallBatches(rows_enough=BATCH_ROWS_MAX // 2)
        for split in self._splits:
            self._file = open_blocks(self._format, split.path, self._columns)
            for batch in self._batches(self._file, split):
                for part in bounded_batches(batch):
                    yield from small.add(part)
            self._file.close()
            self.bytes_read += split.size_bytes
        yield from small.rest()

    def _batches(self, file: BlockFile, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        index = split.start
        batches = file.batches(split.start, split.end)
        while True:
            try:
                batch = next(batches, None)
                if batch is None:
                    return
                found = plain_batch(batch).select(self._columns)
                found = found if found.schema == self._schema else found.cast(self._schema)
            except EngineError as error:
                raise DataError(f"file {split.path}, block {index}: {error}") from None
            except _DAMAGED as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                raise DataError(f"file {split.path}, block {index}: {reason_of(error)}") from None
            yield found
            index += 1

    def close(self) -> None:
        """Close the file that is being read."""
        self._member.close()
        if self._file is not None:
            self._file.close()
            self._file = None
