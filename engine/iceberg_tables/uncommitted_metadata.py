"""Files of metadata that a job has written for commits that are none: a process was killed, or another was first.

    remove_uncommitted(table, location, job id)

    <job id>-<attempt>-m0.avro, snap-<id>-0-<job id>-<attempt>.avro    manifests of a try, by their names
    00002-<uuid>.metadata.json    a version with a snapshot of the job, which the table does not have

What the job's snapshot has stays; where it has expired, what any snapshot has.

Held by: tests/iceberg_tables/test_kills.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from engine.iceberg_tables.metadata_files import METADATA
from engine.iceberg_tables.planned_files import data_path
from engine.iceberg_tables.snapshot_files import JOB_ID, snapshot_of_job
from engine.storage.file_systems import file_system_of

_ENDING: Final = ".metadata.json"


def remove_uncommitted(table: Any, location: str, job_id: str) -> None:
    """Remove them; ``table``: as it is now, None where it is not there."""
    folder = f"{data_path(location)}/{METADATA}"
    files = file_system_of(folder)
    if files.folders is not None:
        files.folders.remove_left(folder)
    snapshot_id = None if table is None else snapshot_of_job(table, job_id)
    names = set() if table is None else {path.rpartition("/")[2] for path in _known(table, snapshot_id)}
    for name, path in list(_entries(folder)):
        if name in names:
            continue
        if job_id in name or (name.endswith(_ENDING) and _is_of_job(path, job_id, snapshot_id)):
            files.delete(path)


def _entries(folder: str) -> Iterator[tuple[str, str]]:
    try:
        for entry in file_system_of(folder).entries(folder):
            yield entry.name, entry.path
    except FileNotFoundError:
        return


def _known(table: Any, snapshot_id: int | None) -> Iterator[str]:
    """Yield the files of metadata that a table may have of a job, whose snapshot may have expired."""
    yield table.metadata_location
    yield from (each.metadata_file for each in table.metadata.metadata_log)
    for snapshot in table.metadata.snapshots:
        if snapshot_id in (None, snapshot.snapshot_id):
            yield snapshot.manifest_list
            yield from (each.manifest_path for each in snapshot.manifests(table.io))


def _is_of_job(path: str, job_id: str, snapshot_id: int | None) -> bool:
    """Return whether a version of a table has a snapshot of a job that is not the one which the table has."""
    try:
        found = json.loads(file_system_of(path).read(path))
    except (FileNotFoundError, ValueError):
        return False
    own = [each for each in found.get("snapshots", ()) if each.get("summary", {}).get(JOB_ID) == job_id]
    return bool(own) and all(each["snapshot-id"] != snapshot_id for each in own)
