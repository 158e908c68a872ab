"""Columns that are in the paths of files: a source over another one, of any format.

    sales/year=2024/part-00000.parquet ──► source of all files ──► PathSource: its columns, and year

    path_source(entry, path, PathOptions(...), request) -> source     wrapped, where there is anything to add

Types of values: int64 where all are whole numbers as Python writes them (01 stays text), uint64 or a decimal where some
are larger, date32 where all are days, else string; a schema beats that. A column of the same name in the files is not
read. Columns that some of the files have not (``schema_mode="union"``) are null there.

Held by: tests/connectors/test_path_columns.py
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias, cast

import msgspec
import pyarrow as pa

from engine.errors import ConfigurationError, SchemaError
from engine.files.hive import HiveFiles, hive_files
from engine.files.paths import PathLike
from engine.formats.registry import reading_call
from engine.formats.source_format import FoundSource, ReadRequest, SourceFormat
from engine.graph.source_spec import (
    ColumnStatistics,
    FileSource,
    PathSource,
    SourceSpec,
    SourceSplit,
    SourceStatistics,
)
from engine.records.plain_types import plain_type
from engine.storage.store_options import StorageOptions

#: the choice of a user: "hive", "none", None, or a pyarrow.Schema with the types of the keys
Partitioning: TypeAlias = Any

_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]{0,37})\Z")
#: types of whole numbers; the first one that has all values is taken
_WHOLE_TYPES: Final = (pa.int64(), pa.uint64(), pa.decimal128(38, 0))
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")


class PathColumns(NamedTuple):
    """Columns that paths give, and their value for each path as text."""

    schema: pa.Schema
    values: dict[str, tuple[str | None, ...]]


def is_asked(partitioning: Partitioning, reader: str) -> bool | None:
    """Return whether folders are to be taken apart, None: where they look so; ConfigurationError for other words."""
    if partitioning is None:
        return None
    if isinstance(partitioning, pa.Schema) or partitioning == "hive":
        return True
    if partitioning == "none":
        return False
    raise ConfigurationError(f"{reader}: partitioning={partitioning!r}: choose 'hive', 'none', or a pyarrow.Schema")


def path_columns(found: HiveFiles, types: pa.Schema | None, file_name_column: str | None, reader: str) -> PathColumns:
    """Return the columns of paths; SchemaError for a value that its type does not take.

    types: of keys, and maybe of other columns.
    """
    fields = []
    for index, key in enumerate(found.keys):
        texts = list(dict.fromkeys(values[index] for values in found.values))
        if found.keys.index(key) != index:
            raise SchemaError(f"{reader}: two folders of {found.paths[0]} are named after {key!r}")
        given = plain_type(types.field(key).type) if types is not None and key in types.names else None
        data_type = _inferred(texts) if given is None else given
        if not pa.types.is_string(data_type) and not _casts(texts, data_type):
            _refuse([values[index] for values in found.values], data_type, key, found.paths, reader)
        fields.append(pa.field(key, data_type))
    values = found.values
    if file_name_column is not None:
        if file_name_column in found.keys:
            raise SchemaError(f"{reader}: file_name_column={file_name_column!r} is a key of the folders")
        fields.append(pa.field(file_name_column, pa.string()))
        values = tuple((*each, path) for each, path in zip(values, found.paths, strict=True))
    return PathColumns(pa.schema(fields), dict(zip(found.paths, values, strict=True)))


def _check_keys(partitioning: Partitioning, found: HiveFiles, reader: str) -> None:
    """Raise SchemaError for a type of what no folder is named after."""
    names = partitioning.names if isinstance(partitioning, pa.Schema) else []
    other = next((name for name in names if name not in found.keys), None)
    if other is not None:
        have = f"they are named after {', '.join(found.keys)}" if found.keys else "none is named key=value"
        raise SchemaError(f"{reader}: partitioning= names {other!r}, but no folder above {found.paths[0]} does: {have}")


def _inferred(texts: Sequence[str | None]) -> pa.DataType:
    known = [text for text in texts if text is not None]
    if known and all(map(_WHOLE.match, known)):
        return next(data_type for data_type in _WHOLE_TYPES if _casts(known, data_type))
    if known and all(map(_DAY.match, known)) and _casts(known, pa.date32()):
        return pa.date32()
    return pa.string()


def _casts(texts: Sequence[str | None], data_type: pa.DataType) -> bool:
    try:
        pa.array(texts, pa.string()).cast(data_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _refuse(
    texts: Sequence[str | None], data_type: pa.DataType, key: str, paths: Sequence[str], reader: str
) -> NoReturn:
    path, text = next((path, text) for text, path in zip(texts, paths, strict=True) if not _casts([text], data_type))
    raise SchemaError(f"{reader}: {path}: {key}={text} is not {data_type}; pass another type for it")


class PathOptions(NamedTuple):
    """The user's options about paths and differing files."""

    partitioning: Partitioning = None
    file_name_column: str | None = None
    schema_mode: str = "strict"
    #: options of the buckets, which are in no plan
    storage_options: StorageOptions = None


def path_source(
    entry: SourceFormat[Any], path: PathLike | Iterable[PathLike], options: PathOptions, request: ReadRequest
) -> FoundSource:
    """Return a source of the files of a path, with the columns that are in their paths.

    Args:
        entry: of the files' format.
        path: file, folder, glob or a list of those.
        options: what is done with paths and files that differ.
        request: what the entry is asked for, with the schema of all columns, where the user gave one.
    """
    reader, schema = reading_call(entry.name), request.schema
    if options.schema_mode not in ("strict", "union"):
        raise ConfigurationError(f"{reader}: schema_mode={options.schema_mode!r}: choose strict or union")
    found = hive_files(path, reader, is_asked(options.partitioning, reader))
    types = options.partitioning if isinstance(options.partitioning, pa.Schema) else schema
    _check_keys(options.partitioning, found, reader)
    columns = path_columns(found, types, options.file_name_column, reader)
    own = schema
    if schema is not None:
        own = pa.schema([field for field in schema if field.name not in columns.schema.names])
        if schema.names and not own.names:
            raise SchemaError(
                f"{reader}: schema= names {', '.join(schema.names)} alone, which comes from the path; it leaves no"
                " column for the files: give their columns too"
            )
    schemas: list[pa.Schema] | None = [] if options.schema_mode == "union" else None
    may_wait = bool(found.keys) and schemas is None
    of_files = request._replace(paths=found.paths, schema=own, found_schemas=schemas, may_wait=may_wait)
    spec, statistics, file_schema = entry.source(of_files)
    if options.file_name_column is not None and options.file_name_column in file_schema.names:
        raise SchemaError(
            f"{reader}: file_name_column={options.file_name_column!r}: the files have a column of that name; choose"
            " another"
        )
    absent = {
        path: missing
        for path, one in zip(found.paths, schemas or (), strict=bool(schemas))
        if (missing := tuple(name for name in file_schema.names if name not in one.names))
    }
    if not columns.schema.names and not absent:
        return spec, statistics, file_schema
    own_fields = [field for field in file_schema if field.name not in columns.schema.names]
    whole = pa.schema([*own_fields, *columns.schema])
    if schema is not None:
        whole = pa.schema([whole.field(name) for name in dict.fromkeys([*schema.names, *whole.names])])
    wrapped = PathSource(
        cast(FileSource, spec),
        spec.paths,
        spec.splits,
        tuple(whole.names),
        columns.schema.serialize().to_pybytes(),
        columns.values,
        absent,
        file_schema.serialize().to_pybytes() if absent else b"",
    )
    return wrapped, _statistics(statistics, columns), whole


def _statistics(statistics: SourceStatistics, columns: PathColumns) -> SourceStatistics:
    """Return statistics of a source with those of the columns of paths, as if all files had as many rows."""
    known: dict[str, ColumnStatistics] = dict(statistics.columns)
    for index, name in enumerate(columns.schema.names):
        texts: list[Any] = [values[index] for values in columns.values.values()]
        nulls = sum(text is None for text in texts)
        distinct = len({text for text in texts if text is not None})
        known[name] = ColumnStatistics(float(distinct), nulls / len(texts))
    return msgspec.structs.replace(statistics, columns=known)


def with_inner(spec: PathSource, inner: SourceSpec) -> PathSource:
    """Return the source over another one of the same files, such as one with other splits."""
    return msgspec.structs.replace(spec, inner=inner, splits=inner.splits)


def with_split_list(spec: PathSource, splits: Sequence[SourceSplit]) -> PathSource:
    """Return the source with some of its splits."""
    return with_inner(spec, msgspec.structs.replace(spec.inner, splits=tuple(splits)))


def path_names(spec: PathSource) -> list[str]:
    """Return the names of the columns that paths give."""
    names: list[str] = pa.ipc.read_schema(pa.py_buffer(spec.path_schema_ipc)).names
    return names


def path_table(spec: PathSource, paths: Sequence[str], names: Collection[str] | None = None) -> pa.RecordBatch:
    """Return the columns of some paths, a row for each; ``names``: of those, None for all."""
    schema = pa.ipc.read_schema(pa.py_buffer(spec.path_schema_ipc))
    wanted = [(index, field) for index, field in enumerate(schema) if names is None or field.name in names]
    columns = [
        pa.array([spec.values[path][index] for path in paths], pa.string()).cast(field.type) for index, field in wanted
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([field for _, field in wanted]))
