"""A look into CSV files when the plan is built: how files begin, and what they hold, from a few blocks of records.

The head of the first file that is not empty gives names; it and the begins of other files, spread over all, give types
(``inference``). Blocks spread evenly over all bytes give the statistics, since sorted files look different at their
ends. A block from the middle begins after the first line end in it; should that lie inside quotes, the block does not
parse and is left out, and it has no say in types.

Held by: tests/csv/test_source.py
Held by: tests/integration/test_samples_of_files.py
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from engine.csv.dialect import CsvDialect
from engine.csv.header import REST, column_names, layout_of
from engine.csv.long_records import find_long_record
from engine.csv.parse import BlockParser, header_fields
from engine.csv.scan import first_record_end, last_record_end, record_offsets
from engine.csv.text import begin_of, begins, is_stream, open_csv
from engine.errors import ConfigurationError, DataError
from engine.files.compression import TextSizes, begins_of, text_sizes
from engine.graph.source_spec import CsvSource, SourceStatistics
from engine.statistics.column_statistics import SampledPlaces, sample_statistics
from engine.storage.file_systems import file_system_of

HEAD_BYTES = 1 << 20
_BLOCK_BYTES = 64 << 10
_BLOCK_COUNT = 12
#: limit of a first record that is longer than the head
_COMPRESSED_HEAD_MAX = 64 << 20
#: limit of text from which types are inferred where a number of rows is asked for
_INFERRED_MAX = 128 << 20


class Block(NamedTuple):
    """Whole records of a file."""

    path: str
    data: bytes


class Head(NamedTuple):
    """The begin of a file: whole records, at least one, unless it is empty."""

    path: str
    data: bytes
    #: begin of the text, behind the byte order mark and the skipped lines
    begin: int
    #: True if the file has no more data
    is_whole: bool


def read_head(spec: CsvSource, path: str) -> Head:
    """Return the head of a file.

    Of a first record with a quote that none closes, which is the whole file, it is the begin.
    """
    dialect = CsvDialect.of(spec.delimiter, spec.quote)
    with open_csv(spec, path) as file:
        begin = begin_of(spec, file)
        data = file.read(HEAD_BYTES)
        while True:
            more = file.read(1)
            if not more:
                return Head(path, data, begin, is_whole=True)
            end = last_record_end(data, dialect.delimiter, dialect.quote)
            if end:
                return Head(path, data[:end], begin, is_whole=False)
            if len(data) == HEAD_BYTES and not is_stream(spec, path):
                record = find_long_record(file, begin, file.seek(0, os.SEEK_END), dialect)
                if not record.is_closed:
                    return Head(path, data, begin, is_whole=False)
                file.seek(begin)
                return Head(path, file.read(record.size_bytes), begin, is_whole=False)
            if len(data) >= _COMPRESSED_HEAD_MAX:
                return Head(path, data, begin, is_whole=False)
            data += more + file.read(len(data))


def first_head(spec: CsvSource) -> Head:
    """Return the head of the first file that holds anything, or an empty one."""
    found = (head for path in spec.paths if (head := read_head(spec, path)).data.strip())
    return next(found, Head(spec.paths[0], b"", 0, is_whole=True))


def first_rows(spec: CsvSource, head: Head) -> Head:
    """Return the head of a file with the rows from which types are inferred. Raises: ConfigurationError."""
    dialect = CsvDialect.of(spec.delimiter, spec.quote)
    wanted = spec.infer_rows + spec.header
    with open_csv(spec, head.path) as file:
        begin, data = begin_of(spec, file), b""
        while True:
            piece = file.read(max(HEAD_BYTES, len(data)))
            data += piece
            offsets = record_offsets(data, dialect.delimiter, dialect.quote)
            if not piece or len(offsets) - 1 > wanted:
                end = offsets[min(wanted, len(offsets) - 1)]
                return Head(head.path, data[:end], begin, is_whole=not piece and end == len(data))
            if len(data) > _INFERRED_MAX:
                raise ConfigurationError(
                    f"read_csv({head.path!r}): infer_rows={spec.infer_rows}: these rows have more than"
                    f" {_INFERRED_MAX >> 20} MB of text; pass schema="
                )


def file_begins(spec: CsvSource, head: Head) -> list[Block]:
    """Return the first blocks of a few other files, spread over all."""
    others = [path for path in spec.paths if path != head.path]
    chosen, size = begins_of(others, _BLOCK_BYTES)
    found = [_begin(spec, path, data, size) for path, data in begins(spec, chosen, size)]
    return [block for block in found if block.data]


def spread_blocks(spec: CsvSource, head: Head) -> list[Block]:
    """Return blocks of records from all over the files beyond the head; of streams, from their begin."""
    sizes = text_sizes(spec.paths, spec.compression)
    if _is_all(spec, head, sizes):
        return []
    if any(is_stream(spec, path) for path in spec.paths):
        return file_begins(spec, head)
    return [block for block in _spread(spec.paths, sizes.sizes) if block.data]


def _is_all(spec: CsvSource, head: Head, sizes: TextSizes) -> bool:
    """Return whether there is nothing beyond a head."""
    return head.is_whole and not any(
        size for path, size in zip(spec.paths, sizes.sizes, strict=True) if path != head.path
    )


def _begin(spec: CsvSource, path: str, data: bytes, size: int) -> Block:
    """Return the whole records that a file begins with, without its header; so many bytes were asked for."""
    dialect = CsvDialect.of(spec.delimiter, spec.quote)
    if len(data) == size:
        data = data[: last_record_end(data, dialect.delimiter, dialect.quote)]
    if spec.header:
        data = data[first_record_end(data, dialect.delimiter, dialect.quote) :]
    return Block(path, data)


def _spread(paths: Sequence[str], sizes: Sequence[int]) -> list[Block]:
    """Return blocks spread evenly over all bytes, none from the begin of all; a header is no part of one."""
    total = sum(sizes)
    block_bytes = min(_BLOCK_BYTES, total // (2 * _BLOCK_COUNT))
    blocks: list[Block] = []
    base = 0
    for path, size in zip(paths, sizes, strict=True):
        for index in range(1, _BLOCK_COUNT):
            position = total * index // _BLOCK_COUNT
            if base <= position < base + size:
                blocks.append(Block(path, _read_block(path, position - base, block_bytes)))
        base += size
    return blocks


def _read_block(path: str, position: int, size: int) -> bytes:
    with file_system_of(path).open_stream(path, is_buffered=True) as file:
        file.seek(position)
        data = file.read(size)
    return data[data.find(b"\n") + 1 : data.rfind(b"\n") + 1]


class Layouts:
    """The columns of the files of a source, each in its own order."""

    def __init__(self, spec: CsvSource, schema: pa.Schema) -> None:
        self._spec = spec
        self._schema = schema
        self._known: dict[str, pa.Schema] = {}

    def of(self, path: str) -> pa.Schema:
        """Return the columns of a file. Raises: DataError, where its header has others."""
        if not self._spec.header or len(self._spec.paths) == 1:
            return self._schema
        if path not in self._known:
            names = names_in(self._spec, path)
            own = self._schema if not names else layout_of(names, self._schema, self._spec.named, path)
            self._known[path] = own
        return self._known[path]


def names_in(spec: CsvSource, path: str) -> list[str]:
    """Return the names of columns that the header of a file has, none of a file without anything in it."""
    dialect = CsvDialect.of(spec.delimiter, spec.quote)
    head = read_head(spec, path).data
    if not head:
        return []
    record = head[: first_record_end(head, dialect.delimiter, dialect.quote)]
    return column_names(header_fields(record, dialect, path, spec.encoding))


class CsvSample(NamedTuple):
    """Rows from everywhere; ``sampled_bytes`` of ``total_bytes``, headers left out, of files of ``size_bytes``."""

    tables: list[pa.Table]
    sampled_bytes: int
    total_bytes: int
    size_bytes: int
    is_whole: bool


def csv_sample(spec: CsvSource, head: Head, schema: pa.Schema, columns: Sequence[str]) -> CsvSample:
    """Return rows of some columns from blocks spread over all bytes; ``head`` is the first of them."""
    dialect = CsvDialect.of(spec.delimiter, spec.quote)
    sizes = text_sizes(spec.paths, spec.compression)
    data, total = head.data, sizes.total
    if spec.header:
        header_bytes = first_record_end(data, dialect.delimiter, dialect.quote)
        data = data[header_bytes:]
        total = max(len(data), total - header_bytes * len(sizes.sizes))
    is_all = _is_all(spec, head, sizes)
    blocks = [Block(head.path, data)]
    if not is_all:
        end = last_record_end(data[:_BLOCK_BYTES], dialect.delimiter, dialect.quote)
        blocks = [Block(head.path, data[:end] if end else data), *spread_blocks(spec, head)]
    layouts = Layouts(spec, schema)
    tables, sampled_bytes = [], 0
    for block in blocks:
        try:
            tables.append(BlockParser(spec, layouts.of(block.path), list(columns)).parse(block.data))
            sampled_bytes += len(block.data)
        except (pa.ArrowInvalid, DataError):
            continue
    return CsvSample(tables, sampled_bytes, total, sizes.total, is_all and sampled_bytes == len(data))


def csv_statistics(spec: CsvSource, head: Head, schema: pa.Schema, note: str) -> SourceStatistics:
    """Return the statistics of the source from a sample; ``note`` goes before the text of the origin."""
    names = [name for name in schema.names if name != REST]
    tables, sampled_bytes, total, size_bytes, is_whole = csv_sample(spec, head, schema, names)
    sampled_rows = sum(table.num_rows for table in tables)
    row_count = total * sampled_rows / sampled_bytes if sampled_rows else 0.0 if not head.data.strip() else None
    row_count = float(sampled_rows) if is_whole else row_count
    places = SampledPlaces(len(tables), sampled_rows)
    columns = {} if row_count is None else sample_statistics(tables, row_count, places)
    origin = f"{note}{'all' if is_whole else 'sample of'} {sampled_rows} rows"
    return SourceStatistics(row_count, float(size_bytes), origin, is_exact=is_whole, columns=columns)
