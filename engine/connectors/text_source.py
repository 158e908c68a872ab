"""The client's side of a text source: files, splits, what a sample says.

    text_source(path, parallelism) -> (TextSource, SourceStatistics, pa.Schema)

One column ``line``, string. Splits are cut by size alone, wherever that falls: ``text_reader`` reads a line in the
split in which it begins.

Held by: tests/connectors/test_text.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import pyarrow as pa

from engine.connectors.text_lines import LINE, lines_of
from engine.csv.encoding import checked_encoding, marked_encoding
from engine.csv.splits import provisional_splits
from engine.errors import ConfigurationError
from engine.files.compression import check_named, checked_codec, codec_of, heads, stored_as, text_sizes
from engine.files.paths import PathLike, expand_paths
from engine.graph.source_spec import SourceStatistics, TextSource
from engine.statistics.column_statistics import SampledPlaces, sample_statistics
from engine.storage.file_systems import file_system_of

TEXT_SCHEMA: Final = pa.schema([pa.field(LINE, pa.string())])
_WHOLE_BYTES = 1 << 20
_BLOCK_BYTES = 64 << 10
_BLOCK_COUNT = 12


def text_source(
    path: PathLike | Iterable[PathLike],
    parallelism: int,
    compression: str | None = None,
    skip_rows: int = 0,
    encoding: str | None = None,
) -> tuple[TextSource, SourceStatistics, pa.Schema]:
    """Return a text source, what is known of its size, and its schema.

    Raises: PlanError (no such file), ConfigurationError (no such codec), NotYetSupportedError (an archive).
    """
    if isinstance(skip_rows, bool) or not isinstance(skip_rows, int) or skip_rows < 0:
        raise ConfigurationError(f"read_text: skip_rows={skip_rows!r}: must be a number of lines, 0 or more")
    codec = checked_codec(compression, "read_text")
    paths = expand_paths(path, "read_text")
    check_named(paths, codec, "read_text")
    charset = checked_encoding(encoding, "\n", None).name if encoding else marked_encoding(paths, codec, "read_text")
    codec = stored_as(codec, charset)
    spec = TextSource(paths, provisional_splits(paths, parallelism, codec), (LINE,), codec, skip_rows)
    statistics = _statistics(paths, codec)
    return spec, msgspec.structs.replace(statistics, is_exact=statistics.is_exact and not skip_rows), TEXT_SCHEMA


def with_splits(spec: TextSource, parallelism: int) -> TextSource:
    """Return the source with splits for so many subtasks, of its files as they are now."""
    return msgspec.structs.replace(spec, splits=provisional_splits(spec.paths, parallelism, spec.compression))


def _statistics(paths: Sequence[str], compression: str) -> SourceStatistics:
    known = text_sizes(paths, compression)
    total = known.total
    is_whole = known.is_exact and total <= _WHOLE_BYTES
    if is_whole:
        blocks = heads(paths, compression, _WHOLE_BYTES, len(paths))
    elif any(codec_of(path, compression) for path in paths):
        blocks = [lines[: lines.rfind(b"\n") + 1] for lines in heads(paths, compression, _BLOCK_BYTES, _BLOCK_COUNT)]
    else:
        blocks = spread_blocks(paths, known.sizes)
    # A sample that is not UTF-8 says nothing; the reader of the line says where it is.
    lines = [lines_of(block) for block in blocks if block and _is_text(block)]
    rows = sum(len(one) for one in lines)
    sampled_bytes = sum(len(block) for block in blocks)
    row_count = rows * total / sampled_bytes if rows else 0.0 if not total else None
    tables = [pa.table([one], schema=TEXT_SCHEMA) for one in lines]
    places = SampledPlaces(len(tables), rows)
    columns = {} if row_count is None else sample_statistics(tables, row_count, places)
    origin = f"{'all' if is_whole else 'sample of'} {rows} lines"
    return SourceStatistics(row_count, float(total), origin, is_exact=is_whole, columns=columns)


def _is_text(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def spread_blocks(paths: Sequence[str], sizes: Sequence[int]) -> list[bytes]:
    """Return blocks of whole lines, spread evenly over all bytes."""
    total = sum(sizes)
    blocks: list[bytes] = []
    base = 0
    for path, size in zip(paths, sizes, strict=True):
        with file_system_of(path).open_stream(path, is_buffered=True) as file:
            for index in range(_BLOCK_COUNT):
                position = total * index // _BLOCK_COUNT - base
                if 0 <= position < size:
                    file.seek(position)
                    data = file.read(_BLOCK_BYTES)
                    begin = data.find(b"\n") + 1 if position else 0
                    blocks.append(data[begin : data.rfind(b"\n") + 1])
        base += size
    return blocks
