"""Small Parquet files, each read from disk at once: of ten thousand of them, opening is what takes the time.

    file = small_file(path, groups, columns, status)
                                                  None: it is not small, or something about it is not as it should be
    file.schema                                   plain types of some columns, as the file has them
    file.batches                                  the rows of the row groups

The bytes are read in one call and decoded by pyarrow, without what larger files are worth: a footer that is shared,
pages that are passed over, reservations for each row group. What footer and pages say is looked at before, as for
others; where that is wrong the file is left to ``reader``, which reports the error.

Held by: tests/parquet/test_small_files.py
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from engine.graph.source_spec import SourceSplit
from engine.parquet.fetched_bytes import FetchedBytes
from engine.parquet.fetched_chunks import ChunkFile
from engine.parquet.footers import open_bytes
from engine.parquet.pages import leaf_pages, leaf_places
from engine.parquet.source import plain_file_schema
from engine.storage.file_system import FileStatus
from engine.storage.file_systems import file_system_of

#: fewer are read as larger ones are
FILES_MIN: Final = 16
#: limits of a file, and of its row groups before compression
SMALL_BYTES_MAX: Final = 256 << 10
#: limit of its decoded rows: a value of a dictionary may occur in many of them
_DECODED_BYTES_MAX: Final = 4 << 20
_ROWS_MAX: Final = 16384


class SmallFile(NamedTuple):
    """Rows of a small file."""

    schema: pa.Schema
    batches: list[pa.RecordBatch]


def has_many_files(splits: Iterable[SourceSplit]) -> bool:
    """Whether splits are of so many files that small ones are read so."""
    return len({split.path for split in splits}) >= FILES_MIN


def small_file(
    path: str, groups: Sequence[int], columns: Sequence[str], status: FileStatus | None = None
) -> SmallFile | None:
    """Return columns of row groups of a small file, None where the file is not one, or is damaged."""
    with file_system_of(path).open_ranges(path, status=status) as opened:
        try:
            data = opened.read_at(0, SMALL_BYTES_MAX + 1)
            if len(data) > SMALL_BYTES_MAX:
                return None
            file = open_bytes(data)
            with contextlib.closing(ChunkFile(opened)) as chunks:
                chunks.fetch(0, [(0, len(data))])
                if not _are_small(chunks.source(0), file.metadata, groups, columns):
                    return None
            table = file.read_row_groups(list(groups), columns=list(columns), use_threads=False)
        except (pa.ArrowException, OSError):
            return None
    if table.num_rows != sum(file.metadata.row_group(group).num_rows for group in groups):
        return None
    return SmallFile(plain_file_schema(table.schema), table.to_batches())


def _are_small(
    source: int | FetchedBytes, footer: pq.FileMetaData, groups: Sequence[int], columns: Sequence[str]
) -> bool:
    """Whether rows of row groups are few and narrow; pa.ArrowInvalid where a page cannot be what it says."""
    rows, size_bytes = 0, 0.0
    places = leaf_places(footer.schema, columns)
    for group in groups:
        metadata = footer.row_group(group)
        rows += metadata.num_rows
        for _, leaf in places:
            pages = leaf_pages(source, metadata.column(leaf), group)
            size_bytes += pages.whole_bytes + pages.value_bytes * metadata.num_rows
    return rows <= _ROWS_MAX and size_bytes <= _DECODED_BYTES_MAX
