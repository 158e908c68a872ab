"""The data files of a snapshot, each with the deletes that apply to its rows: what manifests say, read once.

    plan = planned(table, snapshot, "read_iceberg")
    plan.files                     PlannedFile: data file, partition, sequence number, position deletes or a deletion
                                   vector, equality deletes
    kept_plan(plan.key)            the plan again, for its bounds, while a job is planned in this process

A delete applies to a file that is not newer: of positions to one of the same sequence number too, of equal values to
older ones alone. It applies within its partition, and a delete of equal values without partition in all. Where a file
has a deletion vector, that is all of its deleted positions.

Source: Iceberg's specification, "Scan Planning".
Held by: tests/iceberg_tables/test_row_deletes.py
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple

from engine.errors import NotYetSupportedError

#: plans that are kept, each with the bounds of all columns of its files
_KEPT_MAX: Final = 8
#: manifests that are read at the same time, since a store takes its time for each
_MANIFEST_THREADS: Final = 4
#: places of fields of the third version behind those that pyiceberg names
REFERENCED: Final = 17
_OFFSET: Final = 18
_SIZE: Final = 19
#: field of the paths of data files in files of deletes
PATH_ID: Final = 2147483546

Partition = tuple[int, tuple[Any, ...]]


class PlannedFile(NamedTuple):
    """A data file, or a file of equality deletes, as manifests have it."""

    file: Any
    sequence_number: int
    partition: Partition
    position_deletes: tuple[Any, ...] = ()
    vector: Any = None
    #: sets of field ids by which rows of it may be deleted
    equality: frozenset[tuple[int, ...]] = frozenset()

    @property
    def has_deletes(self) -> bool:
        """Whether fewer rows may come out than the file has."""
        return bool(self.position_deletes or self.vector or self.equality)

    @property
    def has_position_deletes(self) -> bool:
        """Whether rows are deleted by their places."""
        return bool(self.position_deletes or self.vector)

    def delete_paths(self) -> list[str]:
        """Return the files in which its deleted positions are."""
        return [each.file_path for each in ((self.vector,) if self.vector is not None else self.position_deletes)]

    def known_deletes(self) -> list[Any]:
        """Return the places of its deleted positions, as ``row_deletes`` takes them."""
        if self.vector is not None:
            return [[self.vector.file_path, self.vector[_OFFSET], self.vector[_SIZE]]]
        return [*self.delete_paths()]


class FilePlan(NamedTuple):
    """The files of a snapshot."""

    key: str
    files: tuple[PlannedFile, ...]
    #: files of equality deletes that apply to some file
    equality_deletes: tuple[PlannedFile, ...]


_kept: Final[OrderedDict[str, tuple[Any, FilePlan]]] = OrderedDict()
_lock: Final = threading.Lock()


def planned(table: Any, snapshot: Any, call: str) -> FilePlan:
    """Return the files of a snapshot. Raises: NotYetSupportedError, and what pyiceberg does."""
    key = f"{table.metadata.table_uuid} {None if snapshot is None else snapshot.snapshot_id} {table.metadata_location}"
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key][1]
    entries = list(_entries(table, snapshot, call))
    plan = _with_deletes(key, entries)
    with _lock:
        _kept[key] = (table.metadata, plan)
        if len(_kept) > _KEPT_MAX:
            _kept.popitem(last=False)
    return plan


def data_path(location: str) -> str:
    """Return the path of a file in a plan: its location, without a scheme that means this machine.

    What looks like an escape within it (%2F) is part of its name.
    """
    for scheme in ("file://", "file:"):
        if location.startswith(scheme):
            return location[len(scheme) :]
    return location


def kept_plan(key: str) -> tuple[Any, FilePlan] | None:
    """Return the table's metadata and a plan of this process, None where it is not kept any more."""
    with _lock:
        return _kept.get(key)


def _entries(table: Any, snapshot: Any, call: str) -> Iterator[PlannedFile]:
    if snapshot is None:
        return
    from engine.iceberg_tables.manifests import manifests_of

    with ThreadPoolExecutor(_MANIFEST_THREADS, "manifest") as threads:
        for entries in threads.map(partial(_entries_of, table.io), manifests_of(table.io, snapshot)):
            for each in entries:
                _check(each.file, call)
                yield each


def _entries_of(io: Any, manifest: Any) -> list[PlannedFile]:
    """Return the files of a manifest."""
    from engine.iceberg_tables.manifests import entries_of

    entries = []
    for entry in entries_of(io, manifest):
        partition = tuple(map(_hashable, entry.data_file.partition._data))
        entries.append(
            PlannedFile(entry.data_file, entry.sequence_number or 0, (manifest.partition_spec_id, partition))
        )
    return entries


def _hashable(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def _check(file: Any, call: str) -> None:
    kind = str(file.file_format.value)
    if kind not in ("PARQUET", "PUFFIN"):
        raise NotYetSupportedError(
            f"{call}: {file.file_path} is {kind}; rewrite the table's files as Parquet, reading {kind}"
        )
    if file.key_metadata:
        raise NotYetSupportedError(f"{call}: {file.file_path} is encrypted, which")


def _with_deletes(key: str, entries: list[PlannedFile]) -> FilePlan:
    """Return files with the deletes that apply to them."""
    data = [each for each in entries if each.file.content == 0]
    positions = [each for each in entries if each.file.content == 1 and each.file.file_format.value != "PUFFIN"]
    vectors = {each.file[REFERENCED]: each.file for each in entries if each.file.file_format.value == "PUFFIN"}
    equality = [each for each in entries if each.file.content == 2]
    if not (positions or vectors or equality):
        return FilePlan(key, tuple(data), ())
    by_path: dict[str, list[PlannedFile]] = {}
    by_partition: dict[Partition, list[PlannedFile]] = {}
    for each in positions:
        path = only_path(each.file)
        if path is None:
            by_partition.setdefault(each.partition, []).append(each)
        else:
            by_path.setdefault(path, []).append(each)
    files, newest = [], _newest(equality)
    for each in data:
        path = each.file.file_path
        vector = vectors.get(path)
        found = [*by_path.get(path, ()), *by_partition.get(each.partition, ())]
        deletes = [] if vector is not None else [one.file for one in found if _is_for(one, each)]
        scopes = (newest.get(None, {}), newest.get(each.partition, {}))
        values = {ids for scope in scopes for ids, number in scope.items() if number > each.sequence_number}
        files.append(each._replace(position_deletes=tuple(deletes), vector=vector, equality=frozenset(values)))
    oldest = min((each.sequence_number for each in data), default=0)
    return FilePlan(key, tuple(files), tuple(each for each in equality if each.sequence_number > oldest))


def _newest(equality: Iterable[PlannedFile]) -> dict[Partition | None, dict[tuple[int, ...], int]]:
    """Return the newest equality deletes by partition, None for all of them, and by the ids of their columns."""
    newest: dict[Partition | None, dict[tuple[int, ...], int]] = {}
    for each in equality:
        scope = newest.setdefault(each.partition if each.partition[1] else None, {})
        ids = tuple(sorted(each.file.equality_ids))
        scope[ids] = max(scope.get(ids, 0), each.sequence_number)
    return newest


def _is_for(delete: PlannedFile, file: PlannedFile) -> bool:
    """Return whether position deletes may be of a file."""
    if delete.sequence_number < file.sequence_number:
        return False
    low, high = (_path_bound(each) for each in (delete.file.lower_bounds, delete.file.upper_bounds))
    path = file.file.file_path.encode()
    return (low is None or low <= path) and (high is None or path <= high)


def _path_bound(bounds: dict[int, bytes] | None) -> bytes | None:
    return (bounds or {}).get(PATH_ID)


def only_path(file: Any) -> str | None:
    """Return the path of the data file that all deletes of a file are of, None for several."""
    if file[REFERENCED]:
        return str(file[REFERENCED])
    low, high = _path_bound(file.lower_bounds), _path_bound(file.upper_bounds)
    return low.decode() if low is not None and low == high else None
