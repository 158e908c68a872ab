"""Orphans in the storage: files that no handle names, handles whose files are missing, staging of former jobs.

    find_orphans(folder, handles, outputs) ─► Orphan * ─► remove_orphan(orphan, handles) ─► whether it is gone

    handle    its graph is missing or damaged, so no leader can run the job       only the leader can remove it
    foreign   a node among the handles that is none                               never removed
    job       the folder of a job that has no handle
    file      half written, or in the folder of a job that names another one
    result    of a job that has no handle, or that names another one
    blobs     of a job that has no handle
    staging   beside an output: of a job of this cluster that has no handle

Leaders write a file first and its handle then, so files are listed before handles are read, and what is young should
be left alone: a handle may be about to name it. Before something is removed its handle is looked for again. Blocking.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from engine.clock import SystemClock
from engine.commit.targets import target_named, targets_in
from engine.dispatcher.job_handle import DamagedJobError, JobHandle, checked_content, decode_handle
from engine.formats.output_check import sinks_of, staging_of
from engine.graph.deployment import Staging
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.storage.file_systems import LOCAL
from ha.interfaces import ForeignStateError, StateHandleStore

_JOB_ID = re.compile(r"[0-9a-f]{32}")


class Orphan(NamedTuple):
    """A stored file or handle that no job needs."""

    kind: str
    job_id: str
    path: str
    size_bytes: int
    #: seconds since the last change; None: unknown
    age_s: float | None
    #: staging, by its target
    staging: Staging | None = None


def find_orphans(folder: Path, store: StateHandleStore, outputs: Iterable[str] = ()) -> list[Orphan]:
    """Return the orphans in a cluster's folder, and the staging in the folders ``outputs``.

    Raises: OSError; StateUnavailableError, ForeignStateError when handles cannot be listed.
    """
    stored = list(_stored(folder))
    stagings = {each for output in outputs for target in targets_in(output) for each in target.stagings_in(output)}
    identity = _identity(folder)
    handles = {name: _handle(store, name) for name in store.names()}
    found = [Orphan("foreign", name, name, 0, None) for name, handle in handles.items() if handle is None]
    found += [_missing(folder, handle) for handle in handles.values() if handle and _is_missing(folder, handle)]
    for kind, job_id, path in stored:
        if job_id not in handles:
            found.append(_orphan(kind, job_id, path))
            stagings |= set(_stagings_of(path, job_id)) if kind == "job" else set()
        elif (handle := handles[job_id]) is not None:
            unnamed = [path] if kind != "job" else path.iterdir()
            found += [
                _orphan("file" if kind == "job" else kind, job_id, each) for each in unnamed if not _names(handle, each)
            ]
    for left, staging in sorted(stagings, key=lambda each: (each[0].value, each[1].path)):
        if left.value not in handles and target_named(staging.target).is_of_cluster(staging, identity):
            found.append(_staging_orphan(left, staging))
    return found


def remove_orphan(orphan: Orphan, store: StateHandleStore) -> bool:
    """Remove what lies in files, unless a handle names it now; return whether it is gone. Raises OSError."""
    path = Path(orphan.path)
    handle = _handle(store, orphan.job_id) if orphan.job_id else None
    if orphan.kind in ("handle", "foreign") or (handle is not None and _names(handle, path)):
        return False
    if orphan.staging is not None:
        target_named(orphan.staging.target).abort(orphan.staging, JobId(orphan.job_id))
    else:
        LOCAL.delete_tree(os.fspath(path))
    return True


def _stored(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield (kind, job id, path) of everything in the folder; what is half written belongs to no job."""
    for kind, name in (("job", "jobs"), ("result", "results"), ("blobs", "blobs")):
        for path in sorted((folder / name).iterdir()) if (folder / name).is_dir() else ():
            job_id = path.name.partition("-")[0]
            if _JOB_ID.fullmatch(job_id) is not None:
                yield kind, job_id, path
            elif path.name.startswith("."):
                yield "file", "", path
    yield from (("file", "", path) for path in sorted(folder.glob(".identity.*")))


def _names(handle: JobHandle, path: Path) -> bool:
    """Whether a handle needs a file or folder."""
    if path.name == handle.job_id.value:
        return True
    files = [handle.graph, handle.decision, handle.result.file if handle.result is not None else None]
    return path.name in (handle.journal, *(stored.file for stored in files if stored is not None))


def _handle(store: StateHandleStore, name: str) -> JobHandle | None:
    """Return a handle; None for a node that is none, or that is gone."""
    try:
        state = store.read(name)
        return None if state is None else decode_handle(JobId(name), state.content)
    except ForeignStateError:
        return None


def _is_missing(folder: Path, handle: JobHandle) -> bool:
    if handle.result is not None:
        return False
    try:
        checked_content(folder / "jobs" / handle.job_id.value / handle.graph.file, handle.graph)
    except DamagedJobError:
        return True
    return handle.storage != _identity(folder)


def _missing(folder: Path, handle: JobHandle) -> Orphan:
    path = folder / "jobs" / handle.job_id.value / handle.graph.file
    age_s = (SystemClock().wall_ms() - handle.created_ms) / 1000 if handle.created_ms else None
    return Orphan("handle", handle.job_id.value, str(path), 0, age_s)


def _orphan(kind: str, job_id: str, path: Path) -> Orphan:
    size, changed_s = 0, 0.0
    for each in (path, *(path.rglob("*") if path.is_dir() else ())):
        try:
            state = each.lstat()
        except FileNotFoundError:  # its job has just ended
            continue
        size += 0 if each.is_dir() else state.st_size
        changed_s = max(changed_s, state.st_mtime)
    return Orphan(kind, job_id, str(path), size, max(0.0, SystemClock().wall_ms() / 1000 - changed_s))


def _stagings_of(folder: Path, job_id: str) -> Iterator[tuple[JobId, Staging]]:
    """Yield the staging of a job that has left its graph, with its id."""
    for path in folder.glob("graph-*"):
        try:
            graph = msgspec.msgpack.decode(path.read_bytes(), type=JobGraph)
            places = [staging_of(sink.spec, JobId(job_id)) for sink in sinks_of(graph)]
        except (OSError, ValueError):
            continue
        yield from ((JobId(job_id), place) for place in places if target_named(place.target).is_there(place))


def _staging_orphan(job_id: JobId, staging: Staging) -> Orphan:
    size, changed_s = target_named(staging.target).extent(staging)
    age_s = None if changed_s is None else max(0.0, SystemClock().wall_ms() / 1000 - changed_s)
    return Orphan("staging", job_id.value, staging.path, size, age_s, staging)


def _identity(folder: Path) -> str:
    try:
        return (folder / "identity").read_text()
    except FileNotFoundError:
        return ""
