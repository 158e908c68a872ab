"""Data of the client's own process as a source: Arrow tables, Polars, DuckDB and pandas frames, rows.

    arrow_source(data, folder) -> (ArrowSource, SourceStatistics, pa.Schema)

Anything with the Arrow C stream (or array, or a pandas frame's) interface is read batch by batch. Up to INLINE_BYTES
travel inside the plan as the bytes of an Arrow IPC file; more is spooled to such a file in ``folder`` (the
Environment's own temporary one), in batches of ARROW_ROWS_MAX rows, so that subtasks can share it. A file and not a
stream: each split is found without reading those before it.

Held by: tests/connectors/test_columnar_sources.py
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from engine.errors import DiskFullError, SchemaError, SpillError
from engine.files.native_files import native_output
from engine.graph.source_spec import ArrowSource, ColumnStatistics, SourceSplit, SourceStatistics
from engine.records.batch_limits import ARROW_ROWS_MAX, BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.bounded_batches import bounded_batches
from engine.records.plain_types import plain_batch, plain_schema
from engine.statistics.column_statistics import SpreadSample, sample_statistics
from engine.storage.file_systems import file_system_of

INLINE_BYTES = 256 << 10
#: bytes of a split with fewer than about ARROW_ROWS_MAX rows, so that it is worth a subtask's turn
_SPLIT_BYTES_MIN = 3 * BATCH_BYTES_MAX


def to_reader(data: Any) -> pa.RecordBatchReader:
    """Return a stream of batches of anything that offers Arrow data, or raise SchemaError."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if isinstance(data, pa.Table):
        return data.to_reader(ARROW_ROWS_MAX)
    if hasattr(data, "__arrow_c_stream__"):
        return _from_stream(data)
    if hasattr(data, "to_arrow_reader"):
        return data.to_arrow_reader(ARROW_ROWS_MAX)
    if type(data).__module__.partition(".")[0] == "pandas":
        return _from_pandas(data)
    raise SchemaError(
        f"from_arrow: a {type(data).__name__} offers no Arrow data; pass a pyarrow.Table, a Polars, DuckDB or pandas"
        " frame, or use from_rows(rows, schema)"
    )


def _from_stream(data: Any) -> pa.RecordBatchReader:
    """Return the stream of an object; a pandas frame's index is left out."""
    if type(data).__module__.partition(".")[0] == "pandas":
        return _from_pandas(data)
    if type(data).__name__ == "Series":
        raise SchemaError("from_arrow: a Series has no columns; write series.to_frame()")
    if type(data).__module__.partition(".")[0] == "polars":
        _check_no_objects(data)
    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise SchemaError(
            f"from_arrow: a column of the {type(data).__name__} has a type that Arrow does not have ({reason}); cast it"
        ) from None
    return reader


def _check_no_objects(frame: Any) -> None:
    """Raise SchemaError for a column of Python objects, of which Polars exports their places in memory."""
    objects = [name for name, kind in getattr(frame, "schema", {}).items() if str(kind) == "Object"]
    if objects:
        raise SchemaError(f"from_arrow: the column {objects[0]!r} has objects of Python; cast it, or use from_rows")


def _from_pandas(frame: Any) -> pa.RecordBatchReader:
    if not hasattr(frame, "columns"):
        raise SchemaError(f"from_arrow: a {type(frame).__name__} has no columns; write series.to_frame()")
    _check_names([str(name) for name in frame.columns])
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).to_reader(ARROW_ROWS_MAX)
    except UnicodeEncodeError as error:
        raise SchemaError(f"from_arrow: a column name, or a string, is no text: {error}") from None
    except (ValueError, TypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        reason = "; ".join(map(str, error.args))
        raise SchemaError(
            f"from_arrow: a column of the frame has values of no one type ({reason}); make them alike, for example"
            " frame.astype({name: str})"
        ) from None


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise SchemaError("from_arrow: the data has no columns")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise SchemaError(f"from_arrow: the data has two columns of the name {twice!r}; rename one")


def _plain_batches(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        for piece in bounded_batches(batch, ARROW_ROWS_MAX):
            plain = plain_batch(piece)
            yield pa.RecordBatch.from_arrays(plain.columns, schema=schema)


def arrow_source(data: Any, folder: Callable[[], Path]) -> tuple[ArrowSource, SourceStatistics, pa.Schema]:
    """Return a source of Arrow data; ``folder()`` gives the place for data that is too large to travel in the plan.

    Raises: SchemaError when the data offers no Arrow interface or has no columns.
    """
    reader = to_reader(data)
    fields = [pa.field(field.name, field.type) for field in reader.schema.remove_metadata()]
    schema = plain_schema(pa.schema(fields))
    _check_names(schema.names)
    batches = _plain_batches(reader, schema)
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes > INLINE_BYTES:
            return _spooled(held, batches, schema, folder())
    return inline_source(held, held_bytes, schema)


def _statistics(sample: pa.Table, rows: int, size_bytes: int, widths: Mapping[str, float]) -> SourceStatistics:
    origin = "arrow data" if len(sample) == rows else f"arrow data, sample of {len(sample)} rows"
    columns = sample_statistics([sample], rows)
    columns |= {name: ColumnStatistics(average_width_bytes=width) for name, width in widths.items()}
    return SourceStatistics(float(rows), float(size_bytes), origin, is_exact=True, columns=columns)


def inline_source(
    batches: list[pa.RecordBatch], size_bytes: int, schema: pa.Schema
) -> tuple[ArrowSource, SourceStatistics, pa.Schema]:
    """Return a source whose rows travel in the plan, of batches with so many bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    rows = sum(batch.num_rows for batch in batches)
    splits = tuple(
        SourceSplit("", index, index + 1, max(1, batch.nbytes), batch.num_rows) for index, batch in enumerate(batches)
    )
    spec = ArrowSource((), splits, tuple(schema.names), inline=sink.getvalue().to_pybytes())
    return spec, _statistics(pa.Table.from_batches(batches, schema=schema), rows, size_bytes, {}), schema


def _unspooled(error: OSError, folder: Path, written_bytes: int) -> OSError:
    """Return the error of data that could not be written to the client's folder."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return SpillError(f"from_arrow: {folder} cannot be written: {error.strerror or error}")
    free_bytes = file_system_of(os.fspath(folder)).free_bytes(os.fspath(folder)) or 0
    return DiskFullError(
        f"from_arrow: no room in {folder} behind {written_bytes >> 20} MB of the data, {free_bytes >> 20} MB are free;"
        " let TMPDIR name a folder with more, or write the data to Parquet and read that"
    )


def _splits(path: str, rows: list[int], sizes: list[int]) -> Iterator[SourceSplit]:
    """Yield splits of the batches with so many rows and bytes."""
    start = 0
    for end in range(1, len(rows) + 1):
        size_bytes, row_count = sum(sizes[start:end]), sum(rows[start:end])
        is_enough = row_count + BATCH_ROWS_MAX > ARROW_ROWS_MAX or size_bytes >= _SPLIT_BYTES_MIN
        if is_enough or end == len(rows):
            yield SourceSplit(path, start, end, max(1, size_bytes), row_count)
            start = end


def _spooled(
    held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch], schema: pa.Schema, folder: Path
) -> tuple[ArrowSource, SourceStatistics, pa.Schema]:
    path = os.fspath(folder / f"source-{os.urandom(8).hex()}.arrow")
    rows: list[int] = []
    sizes: list[int] = []
    sample = SpreadSample()
    try:
        with native_output(path) as sink, pa.ipc.new_file(sink, schema) as writer:
            for source in (held, rest):
                for batch in source:
                    writer.write_batch(batch)
                    rows.append(batch.num_rows)
                    sizes.append(batch.nbytes)
                    sample.add(batch)
    except OSError as error:
        file_system_of(path).delete(path)
        raise _unspooled(error, folder, sum(sizes)) from None
    spec = ArrowSource((path,), tuple(_splits(path, rows, sizes)), tuple(schema.names))
    return spec, _statistics(sample.table(schema), sum(rows), sum(sizes), sample.widths), schema
