"""Very many Parquet files of which a filter may leave a few: one footer at first, the others when a plan needs them.

    first_look(paths) -> source of all files, as the first one is          when the data set is made
    with_footers(source, schema, ignored, predicate) -> Looked             when a plan is made, of the files left then

Until then a split is a whole file, rows and columns are guessed from the first file (``ParquetSource.is_unread``). The
columns stay those of the first file: where another one has others, or wider types, the plan is an error.

Footers are kept for the next plan of the same files, as long as these have not changed.

Held by: tests/connectors/test_unread_files.py
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa

from engine.errors import PlanError, SchemaError
from engine.files.stored_files import stored_as
from engine.graph.expression import Expression, columns_of
from engine.graph.source_spec import ParquetSource, SourceSplit, SourceStatistics
from engine.parquet.row_group_bounds import bounds_of_files
from engine.parquet.source import parquet_source, source_of_files, widened
from engine.storage.file_system import FileStatus
from engine.storage.file_systems import file_system_of

#: number of files above which it pays to wait for the filters
FILES_MAX: Final = 64

FoundParquet = tuple[ParquetSource, SourceStatistics, pa.Schema]
#: path, size and time of the last change
_Seen = tuple[str, int, int]


def first_look(paths: Sequence[str]) -> FoundParquet:
    """Return a source of files that all are as the first one."""
    spec, statistics, schema = parquet_source([paths[0]])
    found = _statuses(paths)
    sizes = [status.size_bytes for status in found]
    times = sum(sizes) / max(1, sizes[0])
    splits = tuple(SourceSplit(path, 0, 1, max(1, size), 0) for path, size in zip(paths, sizes, strict=True))
    guessed = msgspec.structs.replace(
        statistics,
        row_count=None if statistics.row_count is None else statistics.row_count * times,
        size_bytes=None if statistics.size_bytes is None else statistics.size_bytes * times,
        origin=f"parquet metadata of the first of {len(paths)} files",
        is_exact=False,
        columns={},
    )
    is_stored = file_system_of(paths[0]).objects is not None
    stored = [stored_as(path, status.version) for path, status in zip(paths, found, strict=True)] if is_stored else []
    spec = msgspec.structs.replace(spec, paths=tuple(paths), splits=splits, is_unread=True, stored=tuple(stored))
    return spec, guessed, schema


class Looked(NamedTuple):
    """A source of what the footers of its files say."""

    spec: ParquetSource
    #: None: no file is left
    statistics: SourceStatistics | None
    #: bounds of each split for the columns of a predicate; None: not read yet
    bounds: pa.RecordBatch | None = None


def with_footers(
    spec: ParquetSource, schema: pa.Schema, ignored: Collection[str], predicate: Expression | None = None
) -> Looked:
    """Return the source of what the footers of its files say.

    Args:
        spec: a source whose files were not read.
        schema: of the files' columns, as the first one had them.
        ignored: columns that are not read of them.
        predicate: over columns of the files; bounds of these are read, too.

    Raises: PlanError, DataError (a file that cannot be read), SchemaError (one with other columns).
    """
    paths = list(dict.fromkeys(split.path for split in spec.splits))
    if not paths:
        return Looked(msgspec.structs.replace(spec, is_unread=False), None)
    names = () if predicate is None else tuple(dict.fromkeys(columns_of(predicate)))
    (read, statistics, found), bounds = _read(tuple(_seen(paths)), names)
    found = pa.schema([field for field in found if field.name not in ignored])
    for name in dict.fromkeys([*schema.names, *found.names]):
        _check_column(name, schema, found, spec.paths[0])
    types_ipc = read.types_ipc if found.equals(schema) else schema.serialize().to_pybytes()
    known = msgspec.structs.replace(spec, splits=read.splits, types_ipc=types_ipc, is_unread=False, stored=read.stored)
    return Looked(known, statistics, bounds)


def _statuses(paths: Sequence[str]) -> list[FileStatus]:
    try:
        return [file_system_of(path).status(path) for path in paths]
    except OSError as error:
        raise PlanError(f"read_parquet: {error.filename} cannot be read: {error.strerror}") from None


def _seen(paths: Sequence[str]) -> list[_Seen]:
    found = zip(paths, _statuses(paths), strict=True)
    return [(path, status.size_bytes, status.modified_ns) for path, status in found]


@lru_cache(maxsize=4)
def _read(seen: tuple[_Seen, ...], columns: tuple[str, ...]) -> tuple[FoundParquet, pa.RecordBatch | None]:
    found, footers = source_of_files([path for path, _, _ in seen], "read_parquet")
    is_known = columns and set(columns) <= set(found[2].names)
    return found, bounds_of_files(footers, columns, found[2]) if is_known else None


def _check_column(name: str, schema: pa.Schema, found: pa.Schema, first: str) -> None:
    """Raise SchemaError where a column of files is not as the first file has it, or narrower."""
    if name in schema.names and name in found.names:
        expected, other = schema.field(name).type, found.field(name).type
        if widened(expected, other) == expected:
            return
        what = f"column {name!r} is {other} in some of the files, and {expected} in {first}"
    else:
        what = f"column {name!r} is not in all files: {first} has {', '.join(schema.names)}"
    raise SchemaError(f"read_parquet: {what}; schema_mode='union' looks at all files before the columns are decided")
