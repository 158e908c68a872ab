"""A version of a table, as its log has it: columns, files, what is known of their values, deleted rows.

    snapshot = read_snapshot(place, version, timestamp, "read_delta")
    snapshot.paths  .facts      a place and a row for each file: size, number of rows, least and greatest values, nulls
    snapshot.deleted            rows that deletion vectors delete, by path
    kept_snapshot(place, version)       again, for its bounds, while a job is planned in this process
    selected(place, version, id, path)  in a task: which rows of a file are there

Features of a table that a reader must know, and this one does not, are refused by name.

Source: the Delta transaction log protocol.
Held by: tests/delta_tables/test_read_delta.py
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from engine.delta_tables.library import library, storage_options, told
from engine.delta_tables.table_types import physical_name, to_arrow
from engine.errors import ConfigurationError, DataError, NotYetSupportedError, PlanError
from engine.records.arrow_functions import pc
from engine.storage.file_systems import file_system_of

#: versions that are kept, each with what the log says of all its files
_KEPT_MAX: Final = 8
#: features that are known, or are those of columns whose type is refused
_READER_FEATURES: Final = frozenset(
    {"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint"}
    | {"vacuumProtocolCheck", "variantType"}
)
_READER_VERSION_MAX: Final = 3
#: files in each piece of the library's table, on average, from which on pieces are left as they are
_PIECE_ROWS: Final = 1024


class Snapshot(NamedTuple):
    """A version of a table."""

    place: str
    version: int
    schema: pa.Schema
    partition_columns: tuple[str, ...]
    configuration: dict[str, str]
    #: id of the table, which another one under the same path does not have
    id: str
    #: places of the files, in the order of ``facts``
    paths: list[str]
    #: path, size_bytes, num_records, null_count, min, max, partition; the last four are structs
    facts: pa.Table
    deleted: dict[str, int]


_kept: Final[OrderedDict[tuple[str, int], Snapshot]] = OrderedDict()
_lock: Final = threading.Lock()


def open_table(place: str, version: int | None, call: str, timestamp: datetime | str | None = None) -> Any:
    """Return the library's table. Raises: PlanError (no table, no such version), ConfigurationError (arguments)."""
    deltalake = library(call)
    if version is not None and timestamp is not None:
        raise ConfigurationError(f"{call}: pass version= or timestamp=, not both")
    if version is not None and (isinstance(version, bool) or not isinstance(version, int) or version < 0):
        raise ConfigurationError(f"{call}: version={version!r}: it is a number, 0 for the first")
    with told(call, place):
        table = deltalake.DeltaTable(place, storage_options=storage_options(place), without_files=False)
        if timestamp is not None:
            _load_timestamp(table, place, timestamp, call)
        elif version is not None and version != table.version():
            if version > table.version():
                raise PlanError(f"{call}({place!r}): there is no version {version}; the last one is {table.version()}")
            try:
                table.load_as_version(version)
            except (OSError, deltalake.exceptions.DeltaError):
                raise PlanError(
                    f"{call}({place!r}): version {version} cannot be read any more: its log was cleaned up; the last"
                    f" version is {table.version()}"
                ) from None
    return table


def _load_timestamp(table: Any, place: str, timestamp: datetime | str, call: str) -> None:
    try:
        moment = datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else timestamp
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, AttributeError):
        raise ConfigurationError(f"{call}: timestamp={timestamp!r}: pass a datetime, or a text of ISO 8601") from None
    table.load_as_version(moment)
    # Of a moment before all versions the library loads the first one. Its clock is that of the log's files.
    first = f"{place}/_delta_log/{table.version():020d}.json"
    found = file_system_of(first).find(first)
    if found is not None and found.modified_ns // 10**6 > moment.timestamp() * 1000:
        begin = datetime.fromtimestamp(found.modified_ns / 10**9, UTC).isoformat(timespec="milliseconds")
        raise PlanError(
            f"{call}({place!r}): the table had no version at {moment.isoformat()}; the first that is there, version"
            f" {table.version()}, is of {begin}"
        )


def read_snapshot(
    place: str, version: int | None, timestamp: datetime | str | None, call: str, *, is_written: bool = False
) -> Snapshot:
    """Return a version of a table. Raises: PlanError, ConfigurationError, NotYetSupportedError, ResourceError."""
    table = open_table(place, version, call, timestamp)
    key = (place, table.version())
    known = kept_snapshot(*key)
    # A table that was made anew under the same path has the same versions.
    if known is not None and known.id == table.metadata().id:
        return known
    check_features(table, call)
    with told(call, place):
        snapshot = _snapshot(place, table, call)
    with _lock:
        _kept[key] = snapshot
        _kept.move_to_end(key)
        if len(_kept) > _KEPT_MAX:
            _kept.popitem(last=False)
    return snapshot


def kept_snapshot(place: str, version: int) -> Snapshot | None:
    """Return a version that this process has read, None where it is not kept any more."""
    with _lock:
        return _kept.get((place, version))


def check_features(table: Any, call: str) -> None:
    """Raise NotYetSupportedError for a feature that readers must know, and this one does not."""
    protocol = table.protocol()
    unknown = sorted(set(protocol.reader_features or ()) - _READER_FEATURES)
    if protocol.min_reader_version > _READER_VERSION_MAX:
        unknown = [f"version {protocol.min_reader_version} of the protocol"]
    if unknown:
        raise NotYetSupportedError(f"{call}: the table asks its readers for {', '.join(unknown)}, which")


def _snapshot(place: str, table: Any, call: str) -> Snapshot:
    metadata = table.metadata()
    schema = to_arrow(table.schema().to_json(), call)
    facts = _by_path(pa.table(table.get_add_actions(flatten=False)))
    has_vectors = "deletionVectors" in (table.protocol().reader_features or ())
    deleted = {path: len(rows) - rows.true_count for path, rows in _selections(place, table).items()}
    return Snapshot(
        place,
        table.version(),
        schema,
        tuple(metadata.partition_columns),
        dict(metadata.configuration),
        metadata.id,
        _file_places(place, facts.column("path").to_pylist()),
        facts,
        deleted if has_vectors else {},
    )


def _by_path(actions: pa.Table) -> pa.Table:
    """Return a row for each file in the order of paths: what is in it already, and in large pieces, is not copied."""
    paths = actions.column("path")
    if not pc.all(pc.less_equal(paths.slice(0, max(0, len(paths) - 1)), paths.slice(1))).as_py():
        actions = actions.take(pc.sort_indices(paths))
    elif len(paths) >= _PIECE_ROWS * paths.num_chunks:
        return actions
    return actions.combine_chunks()


def _file_places(place: str, paths: list[str]) -> list[str]:
    """Return the places of very many files. In most tables all are relative to the table, and none is encoded."""
    text = "\n".join(["", *paths])
    if any(mark in text for mark in ("%", "://", "\n/")):
        return [file_place(place, path) for path in paths]
    return list(map(f"{place}/".__add__, paths))


def file_place(place: str, path: str) -> str:
    """Return the place of a file by its path in the log: relative to the table, or a URI, percent-encoded."""
    plain = unquote(path) if "%" in path else path
    if "://" not in plain:
        return plain if plain[0] == "/" else f"{place}/{plain}"
    return plain.removeprefix("file://")


def _selections(place: str, table: Any) -> dict[str, pa.BooleanArray]:
    """Return a mask for each file with a deletion vector: the rows that are there."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    found: dict[str, pa.BooleanArray] = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for path, rows in zip(batch.column("filepath").to_pylist(), batch.column("selection_vector"), strict=True):
            found[file_place(place, path)] = rows.values
    return found


@lru_cache(maxsize=2)
def _selections_of(place: str, version: int, table_id: str) -> dict[str, pa.BooleanArray]:
    table = open_table(place, version, "read_delta")
    if table.metadata().id != table_id:
        raise DataError(f"read_delta({place!r}): the table was made anew since the plan was built; build it again")
    return _selections(place, table)


def selected(place: str, version: int, table_id: str, path: str) -> pa.BooleanArray | None:
    """Return a mask of the rows of a file that are there; so are all behind its end. None: all rows are."""
    return _selections_of(place, version, table_id).get(path)


def facts_of(snapshot: Snapshot, kind: str, field: pa.Field) -> pa.ChunkedArray | None:
    """Return facts of the log about a column, a row each file: min, max, null_count or partition; None: no facts."""
    column = snapshot.facts.column(kind) if kind in snapshot.facts.column_names else None
    if column is None or not pa.types.is_struct(column.type):
        return None
    # Partitions go by the table's names. Others must not: a file may have the name of this column for another one.
    index = column.type.get_field_index(field.name if kind == "partition" else physical_name(field))
    return pc.struct_field(column, [index]) if index >= 0 else None
