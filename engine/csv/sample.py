"""A look into CSV files when the plan is built: its begin, and what it holds, from a few blocks of records.

The head of the first file that is not empty gives names and inferred types (``inference``); blocks spread evenly
over all bytes give the statistics, since sorted files look different at their ends. A block from the middle begins
after the first line end in it; should that lie inside quotes, the block does not parse and is left out.

Held by: tests/csv/test_source.py
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from engine.csv.dialect import BYTE_ORDER_MARK, CsvDialect
from engine.csv.long_records import find_long_record
from engine.csv.parse import BlockParser
from engine.csv.scan import first_record_end, last_record_end
from engine.files.compression import TextSizes, codec_of, heads, open_text, text_sizes
from engine.graph.source_spec import CsvSource, SourceStatistics
from engine.statistics.column_statistics import SampledPlaces, sample_statistics

HEAD_BYTES = 1 << 20
_BLOCK_BYTES = 64 << 10
_BLOCK_COUNT = 12
#: of a first record that is longer than the head
_COMPRESSED_HEAD_MAX = 64 << 20


def read_head(path: str, dialect: CsvDialect, compression: str = "") -> bytes:
    """Return whole records from the begin of a file, without its byte order mark; at least one, unless it is empty.

    Of a first record with a quote that none closes, which is the whole file, it is the begin.
    """
    codec = codec_of(path, compression)
    with open_text(path, codec) as file:
        begin = len(BYTE_ORDER_MARK)
        if file.read(begin) != BYTE_ORDER_MARK:
            begin = file.seek(0)
        data = file.read(HEAD_BYTES)
        while True:
            more = file.read(1)
            if not more:
                return data
            end = last_record_end(data, dialect.delimiter, dialect.quote)
            if end:
                return data[:end]
            if len(data) == HEAD_BYTES and not codec:
                record = find_long_record(file, begin, file.seek(0, os.SEEK_END), dialect)
                if not record.is_closed:
                    return data
                file.seek(begin)
                return file.read(record.size_bytes)
            if len(data) >= _COMPRESSED_HEAD_MAX:
                return data
            data += more + file.read(len(data))


def first_head(paths: Sequence[str], dialect: CsvDialect, compression: str = "") -> bytes:
    """Return the head of the first file that holds anything, or b""."""
    return next((head for path in paths if (head := read_head(path, dialect, compression)).strip()), b"")


def _spread_blocks(paths: Sequence[str], sizes: Sequence[int]) -> list[bytes]:
    """Return blocks spread evenly over all bytes, none from the begin of all."""
    total = sum(sizes)
    block_bytes = min(_BLOCK_BYTES, total // (2 * _BLOCK_COUNT))
    blocks: list[bytes] = []
    base = 0
    for path, size in zip(paths, sizes, strict=True):
        for index in range(1, _BLOCK_COUNT):
            position = total * index // _BLOCK_COUNT
            if base <= position < base + size:
                blocks.append(_read_block(path, position - base, block_bytes))
        base += size
    return blocks


def _read_block(path: str, position: int, size: int) -> bytes:
    with Path(path).open("rb") as file:
        file.seek(position)
        data = file.read(size)
    return data[data.find(b"\n") + 1 : data.rfind(b"\n") + 1]


def sample_blocks(spec: CsvSource, head: bytes) -> list[bytes]:
    """Return blocks of records from all over the files beyond the head, none where that is all."""
    sizes = text_sizes(spec.paths, spec.compression)
    return _blocks(spec, sizes) if len(head) + len(BYTE_ORDER_MARK) < sizes.total or not sizes.is_exact else []


def _blocks(spec: CsvSource, sizes: TextSizes) -> list[bytes]:
    """Return blocks spread over all files; of those that are compressed, from their begin."""
    if not any(codec_of(path, spec.compression) for path in spec.paths):
        return _spread_blocks(spec.paths, sizes.sizes)
    begins = heads(spec.paths[1:], spec.compression, _BLOCK_BYTES, _BLOCK_COUNT) if len(spec.paths) > 1 else []
    return [block[block.find(b"\n") + 1 : block.rfind(b"\n") + 1] for block in begins]


class CsvSample(NamedTuple):
    """Rows from everywhere; ``sampled_bytes`` of ``total_bytes``, headers left out, of files of ``size_bytes``."""

    tables: list[pa.Table]
    sampled_bytes: int
    total_bytes: int
    size_bytes: int
    is_whole: bool


def csv_sample(spec: CsvSource, head: bytes, schema: pa.Schema, columns: Sequence[str]) -> CsvSample:
    """Return rows of some columns from blocks spread over all bytes; ``head`` is the first of them."""
    dialect = CsvDialect.of(spec.delimiter, spec.quote)
    sizes = text_sizes(spec.paths, spec.compression)
    total = sizes.total
    if spec.header:
        header_bytes = first_record_end(head, dialect.delimiter, dialect.quote)
        head = head[header_bytes:]
        total = max(len(head), total - header_bytes * len(sizes.sizes))
    blocks = [head]
    if len(head) < total or not sizes.is_exact:
        end = last_record_end(head[:_BLOCK_BYTES], dialect.delimiter, dialect.quote)
        blocks = [head[:end] if end else head, *_blocks(spec, sizes)]
    parser = BlockParser(spec, schema, list(columns))
    tables, sampled_bytes = [], 0
    for block in blocks:
        try:
            tables.append(parser.parse(block))
            sampled_bytes += len(block)
        except pa.ArrowInvalid:
            continue
    return CsvSample(tables, sampled_bytes, total, sizes.total, sizes.is_exact and sampled_bytes == total)


def csv_statistics(spec: CsvSource, head: bytes, schema: pa.Schema, note: str) -> SourceStatistics:
    """Return what a sample says of the source; ``note`` goes before the text of the origin."""
    tables, sampled_bytes, total, size_bytes, is_whole = csv_sample(spec, head, schema, schema.names)
    sampled_rows = sum(table.num_rows for table in tables)
    row_count = total * sampled_rows / sampled_bytes if sampled_rows else 0.0 if not head.strip() else None
    places = SampledPlaces(len(tables), sampled_rows)
    columns = {} if row_count is None else sample_statistics(tables, row_count, places)
    origin = f"{note}{'all' if is_whole else 'sample of'} {sampled_rows} rows"
    return SourceStatistics(row_count, float(size_bytes), origin, is_exact=is_whole, columns=columns)
