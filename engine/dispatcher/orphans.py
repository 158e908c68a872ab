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

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from engine.clock import SystemClock
from engine.commit.targets import target_named, targets_in
from engine.dispatcher.job_handle import DamagedJobError, JobHandle, checked_content, decode_handle
from engine.dispatcher.storage_folder import names_below, read_identity
from engine.formats.output_check import sinks_of, staging_of
from engine.graph.deployment import Staging
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.storage.file_systems import extent_of, file_system_of
from ha.interfaces import ForeignStateError, StateHandleStore

_JOB_ID = re.compile(r"[0-9a-f]{32}")


class Orphan(NamedTuple):
    """A stored file or handle that no job needs."""

    kind: str
    job_id: str
    path: str
    size_bytes: int
    #: seconds since the last change, below 0 where the clock of the storage is ahead; None: unknown
    age_s: float | None
    #: staging, by its target
    staging: Staging | None = None


def find_orphans(folder: str, store: StateHandleStore, outputs: Iterable[str] = ()) -> list[Orphan]:
    """Return the orphans in a cluster's folder, and the staging in the folders ``outputs``.

    Raises: OSError; StateUnavailableError, ForeignStateError when handles cannot be listed.
    """
    stored = list(_stored(folder))
    stagings = {each for output in outputs for target in targets_in(output) for each in target.stagings_in(output)}
    identity = read_identity(folder)
    handles = {name: _handle(store, name) for name in store.names()}
    found = [Orphan("foreign", name, name, 0, None) for name, handle in handles.items() if handle is None]
    found += [_missing(folder, handle) for handle in handles.values() if handle and _is_missing(folder, handle)]
    for kind, job_id, path in stored:
        if job_id not in handles:
            found.append(_orphan(kind, job_id, path))
            stagings |= set(_stagings_of(path, job_id)) if kind == "job" else set()
        elif (handle := handles[job_id]) is not None:
            unnamed = [path] if kind != "job" else [f"{path}/{name}" for name in names_below(path)]
            found += [
                _orphan("file" if kind == "job" else kind, job_id, each) for each in unnamed if not _names(handle, each)
            ]
    for left, staging in sorted(stagings, key=lambda each: (each[0].value, each[1].path)):
        if left.value not in handles and target_named(staging.target).is_of_cluster(staging, identity):
            found.append(_staging_orphan(left, staging))
    return found


def remove_orphan(orphan: Orphan, store: StateHandleStore) -> bool:
    """Remove what lies in files, unless a handle names it now; return whether it is gone. Raises OSError."""
    handle = _handle(store, orphan.job_id) if orphan.job_id else None
    if orphan.kind in ("handle", "foreign") or (handle is not None and _names(handle, orphan.path)):
        return False
    if orphan.staging is not None:
        target_named(orphan.staging.target).abort(orphan.staging, JobId(orphan.job_id))
    else:
        file_system_of(orphan.path).delete_tree(orphan.path)
    return True


def _stored(folder: str) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, job id, path) of everything in the folder; what is half written belongs to no job."""
    for kind, below in (("job", "jobs"), ("result", "results"), ("blobs", "blobs")):
        for name in names_below(f"{folder}/{below}"):
            job_id = name.partition("-")[0]
            if _JOB_ID.fullmatch(job_id) is not None:
                yield kind, job_id, f"{folder}/{below}/{name}"
            elif name.startswith("."):
                yield "file", "", f"{folder}/{below}/{name}"
    yield from (
        ("file", "", f"{folder}/{name}") for name in names_below(folder) if name.startswith((".identity.", ".drey-"))
    )


def _names(handle: JobHandle, path: str) -> bool:
    """Whether a handle needs a file or folder."""
    name = path.rpartition("/")[2]
    files = [handle.graph, handle.decision, handle.result.file if handle.result is not None else None]
    needed = (stored.file for stored in files if stored is not None)
    return name in (handle.job_id.value, handle.journal, *needed)


def _handle(store: StateHandleStore, name: str) -> JobHandle | None:
    """Return a handle; None for a node that is none, or that is gone."""
    try:
        state = store.read(name)
        return None if state is None else decode_handle(JobId(name), state.content)
    except ForeignStateError:
        return None


def _is_missing(folder: str, handle: JobHandle) -> bool:
    if handle.result is not None:
        return False
    try:
        checked_content(_graph(folder, handle), handle.graph)
    except DamagedJobError:
        return True
    return handle.storage != read_identity(folder)


def _graph(folder: str, handle: JobHandle) -> str:
    return f"{folder}/jobs/{handle.job_id}/{handle.graph.file}"


def _missing(folder: str, handle: JobHandle) -> Orphan:
    age_s = (SystemClock().wall_ms() - handle.created_ms) / 1000 if handle.created_ms else None
    return Orphan("handle", handle.job_id.value, _graph(folder, handle), 0, age_s)


def _orphan(kind: str, job_id: str, path: str) -> Orphan:
    size, changed_s = extent_of(path)
    return Orphan(kind, job_id, path, size, _age_s(changed_s))


def _age_s(changed_s: float | None) -> float | None:
    return None if changed_s is None else SystemClock().wall_ms() / 1000 - changed_s


def _stagings_of(folder: str, job_id: str) -> Iterator[tuple[JobId, Staging]]:
    """Yield the staging of a job that has left its graph, with its id."""
    for name in names_below(folder):
        if not name.startswith("graph-"):
            continue
        try:
            graph = msgspec.msgpack.decode(file_system_of(folder).read(f"{folder}/{name}"), type=JobGraph)
            places = [staging_of(sink.spec, JobId(job_id)) for sink in sinks_of(graph)]
        except (OSError, ValueError):
            continue
        yield from ((JobId(job_id), place) for place in places if target_named(place.target).is_there(place))


def _staging_orphan(job_id: JobId, staging: Staging) -> Orphan:
    size, changed_s = target_named(staging.target).extent(staging)
    return Orphan("staging", job_id.value, staging.path, size, _age_s(changed_s), staging)
