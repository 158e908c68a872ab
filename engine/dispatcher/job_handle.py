"""JobHandle: the record of a job in the state store, and the files that it names.

A handle is small (names and digests of files, never content), so that it fits into a node of ZooKeeper. Everything a
handle names is a file of the job's folder; names are checked before they become part of a path. Pure but for
``checked_content``.

Held by: tests/dispatcher/test_job_storage.py
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

import msgspec

from engine.clock import SystemClock
from engine.commit.decision import Decision
from engine.dispatcher.job_archive import EndedJob
from engine.errors import EngineError, ResourceError
from engine.formats.output_check import sinks_of, staging_of
from engine.gateways.job_details import JobDetails, JobFailure
from engine.gateways.messages import JobOutcome, JobOverview
from engine.graph.deployment import FailureInfo, Staging
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.jobmaster.job_event import JobEvent
from engine.jobmaster.job_journal import Journal
from engine.storage.file_systems import file_system_of
from engine.versions import HANDLE
from ha.interfaces import ForeignStateError

#: limits of output paths in a handle, which has to stay small
_OUTPUTS_MAX, _OUTPUT_CHARACTERS_MAX = 100, 1000
_FILE = re.compile(r"[a-z]+-[0-9a-f]+(\.json)?|[0-9a-f]{32}-[0-9a-f]+\.json")


class DamagedJobError(EngineError):
    """The stored state of a job is damaged."""


class BrokenJobError(DamagedJobError):
    """A stored job that no leader can run any more."""

    def __init__(self, handle: JobHandle, journal: str, reason: str) -> None:
        super().__init__(f"job {handle.job_id} ({handle.name}) is lost: {reason}")
        self.handle = handle
        self.journal = journal


class StorageElsewhereError(ResourceError):
    """The storage folder is another one than what is stored, or is not there."""


class JobElsewhereError(StorageElsewhereError):
    """The stored state of a job is not in this process's storage folder."""

    def __init__(self, handle: JobHandle, journal: str, reason: str) -> None:
        super().__init__(f"job {handle.job_id} ({handle.name}): {reason}")
        self.handle = handle
        self.journal = journal
        self.reason = reason


class StoredFile(msgspec.Struct, frozen=True):
    """A file that a handle names, and the SHA-256 of its content."""

    file: str
    sha256: str


class StoredResult(msgspec.Struct, frozen=True):
    """The end of a job; without a file where there was no room for one."""

    status: str
    file: StoredFile | None


class JobHandle(msgspec.Struct, frozen=True):
    """The current state of a job."""

    job_id: JobId
    name: str
    #: identity of the folder with its files
    storage: str
    #: epoch of the leader that runs it
    epoch: int
    graph: StoredFile
    journal: str
    decision: StoredFile | None = None
    result: StoredResult | None = None
    #: True if a client has cancelled it
    is_cancelled: bool = False
    #: time of creation, shown to users
    created_ms: int = 0
    #: places in which it stages, by which a leader without its graph aborts; a text is a folder's path, as once written
    outputs: tuple[Staging | str, ...] = ()
    #: number of the submission, rising
    order: int = 0
    format: int = HANDLE.newest


class StoredJob(NamedTuple):
    """A job that has not ended."""

    handle: JobHandle
    job_graph: JobGraph
    decision: Decision | None
    #: journal of the previous leader; it may be missing
    journal: str


class TakenJob(NamedTuple):
    """A stored job that is this leader's: what its JobMaster goes on with."""

    stored: StoredJob
    events: tuple[JobEvent, ...]
    journal: Journal


class StoredEnd(NamedTuple):
    """A job that has ended and of which not everything is removed."""

    handle: JobHandle
    job: EndedJob
    journal: str


def decode_handle(job_id: JobId, content: bytes) -> JobHandle:
    """Return a handle; ForeignStateError when it is none of that job, VersionMismatchError when it is a newer one."""
    try:
        handle = msgspec.json.decode(content, type=JobHandle)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ForeignStateError(f"the handle of job {job_id} is none: {error}") from error
    HANDLE.check(handle.format, f"the handle of job {job_id}")
    result = handle.result.file if handle.result is not None else None
    files = [stored.file for stored in (handle.graph, handle.decision, result) if stored is not None]
    if handle.job_id != job_id or any(_FILE.fullmatch(name) is None for name in (*files, handle.journal)):
        raise ForeignStateError(f"the handle of job {job_id} is of another job, or names files that are not ours")
    return handle


def bare_end(job_id: JobId, name: str, status: str, failure: FailureInfo | None = None) -> EndedJob:
    """Return the end of a job of which nothing else is known."""
    now_ms = SystemClock().wall_ms()
    failures = () if failure is None else (JobFailure(now_ms, failure),)
    return EndedJob(
        JobOverview(job_id, name, status, now_ms, now_ms),
        JobOutcome(job_id, name, status, 0, (), failure),
        JobDetails(job_id, name, status, now_ms, now_ms, {status: now_ms}, (), (), failures),
    )


def outputs_of(job_graph: JobGraph) -> tuple[Staging, ...]:
    """Return the places in which a job stages its outputs, as many as a handle has room for."""
    places = [staging_of(sink.spec, job_graph.job_id) for sink in sinks_of(job_graph)[:_OUTPUTS_MAX]]
    return tuple(place for place in places if len(place.output) <= _OUTPUT_CHARACTERS_MAX)


def checked_content(path: str, stored: StoredFile) -> bytes:
    """Return the content of a file that a handle names; raises DamagedJobError, OSError."""
    try:
        content = file_system_of(path).read(path)
    except FileNotFoundError as error:
        raise DamagedJobError(f"{path} is missing") from error
    if hashlib.sha256(content).hexdigest() != stored.sha256:
        raise DamagedJobError(f"{path} is damaged: its SHA-256 is another one than when it was written")
    return content
