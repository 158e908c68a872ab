"""Actions of a table's log as they stand there: what the library does not tell, and versions that it cannot make.

    live_files(place, version, files) -> the add action of each file, with its deletion vector
    check_unchanged(write, table's place, last version, files)      JobExecutionError for changes of other writers
    put_version(place, version, actions) -> False where there is one

A checkpoint of the second kind is a file of JSON or Parquet with a name of its own; most of its files may be in others
beside it, ``_sidecars``. One of the first kind's name may have these, too.

Source: the Delta transaction log protocol, "Action Reconciliation" and "Checkpoints".
Held by: tests/delta_tables/test_deletion_vectors.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.delta_tables.table_log import file_place
from engine.delta_tables.table_write import TableWrite
from engine.errors import DataError, JobExecutionError
from engine.records.arrow_functions import pc
from engine.storage.file_systems import file_system_of

_CHECKPOINT: Final = re.compile(
    r"(\d{20})\.checkpoint(?:(?:\.\d{10}\.\d{10})?\.parquet|\.[0-9a-f-]{36}\.(?:json|parquet))\Z"
)


def _version_path(place: str, version: int) -> str:
    return f"{place}/_delta_log/{version:020d}.json"


def version_actions(place: str, version: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (kind, action) of a version. Raises: FileNotFoundError where the log does not have it any more."""
    path = _version_path(place, version)
    yield from _json_actions(file_system_of(path).read(path))


def put_version(place: str, version: int, actions: Collection[dict[str, Any]]) -> bool:
    """Make a version; return False, and change nothing, where there is one."""
    path = _version_path(place, version)
    return file_system_of(path).create_if_absent(path, "".join(json.dumps(each) + "\n" for each in actions).encode())


def live_files(place: str, version: int, files: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the add actions of files in a version, by their places. Raises: DataError where the log has none."""
    found: dict[str, dict[str, Any]] = {}
    wanted = {*files}
    checkpoint, parts = _last_checkpoint(place, version)
    for each in range(version, checkpoint, -1):
        actions = list(version_actions(place, each)) if wanted else []
        for kind in ("add", "remove"):  # what is removed and added at once has another vector then
            for word, action in actions:
                if word == kind and (path := file_place(place, action["path"])) in wanted:
                    wanted.discard(path)
                    if kind == "add":
                        found[path] = action
    for part in parts if wanted else ():
        found |= {path: action for path, action in _checkpoint_files(place, part) if path in wanted}
    missing = sorted({*files} - {*found})
    if missing:
        raise DataError(f"{place}: version {version} does not name the file {missing[0]}; read the table again")
    return found


def _last_checkpoint(place: str, version: int) -> tuple[int, list[str]]:
    """Return the version of the last checkpoint, -1 for none, and its files."""
    known: dict[int, list[str]] = {}
    for entry in file_system_of(place).entries(f"{place}/_delta_log"):
        match = _CHECKPOINT.match(entry.name)
        if match is not None and int(match[1]) <= version:
            known.setdefault(int(match[1]), []).append(entry.path)
    last = max(known, default=-1)
    return last, known.get(last, [])


def _checkpoint_files(place: str, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the add actions of a checkpoint, by places."""
    content = file_system_of(path).read(path)
    for kind, action in _json_actions(content) if path.endswith(".json") else _parquet_actions(content):
        if kind == "add":
            yield file_place(place, action["path"]), action
        elif kind == "sidecar":
            name = file_place("", action["path"]).rpartition("/")[2]
            yield from _checkpoint_files(place, f"{place}/_delta_log/_sidecars/{name}")


def _json_actions(content: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in content.decode().splitlines():
        if line.strip():
            yield from json.loads(line).items()


def _parquet_actions(content: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (kind, action) of the files that are there, and of sidecars."""
    file = pq.ParquetFile(pa.BufferReader(content))
    kinds = [kind for kind in ("add", "sidecar") if kind in file.schema_arrow.names]
    for group in range(file.num_row_groups):
        rows = file.read_row_group(group, columns=kinds)
        for kind in kinds:
            is_there = pc.is_valid(pc.struct_field(rows.column(kind), ["path"]))
            for action in rows.column(kind).filter(is_there).to_pylist():
                yield kind, _without_nulls(action)


def _without_nulls(action: dict[str, Any]) -> dict[str, Any]:
    """Return an action of Parquet as JSON has it."""
    known = {key: value for key, value in action.items() if value is not None and not key.endswith("_parsed")}
    for word in ("partitionValues", "tags"):
        if word in known:
            known[word] = dict(known[word])
    if "deletionVector" in known:
        vector = known["deletionVector"]
        known["deletionVector"] = {key: value for key, value in vector.items() if value is not None}
    return known


def check_unchanged(write: TableWrite, place: str, last: int, files: Collection[str]) -> None:
    """Raise JobExecutionError where another writer has changed what a job has read; ``files``: what it changes."""
    again = "nothing was changed: run it again"
    for version in range(write.version + 1, last + 1):
        try:
            actions = list(version_actions(place, version))
        except FileNotFoundError:
            raise JobExecutionError(f"{place}: version {version} is not in the log any more; {again}") from None
        if any(kind == "remove" and file_place(place, action["path"]) in files for kind, action in actions):
            raise JobExecutionError(
                f"{place}: another writer has removed files of version {write.version} that this job rewrites; {again}"
            )
        if write.changes_data and any(_is_change(kind, action) for kind, action in actions):
            raise JobExecutionError(
                f"{place}: another writer has changed rows since version {write.version}, with which this job has"
                f" compared its own; {again}"
            )


def _is_change(kind: str, action: dict[str, Any]) -> bool:
    return kind in ("metaData", "protocol") or (kind in ("add", "remove") and bool(action.get("dataChange", True)))
