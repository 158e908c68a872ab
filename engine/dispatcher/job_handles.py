"""JobHandles: the handles of a leader's jobs in the StateHandleStore: read, changed and made again under its epoch.

    create ─► read, existing ─► change(job id, handle ─► handle): repeated until it is in force ─► remove
    restore(job id)      a handle that is gone though the job is this leader's, made again from ``LiveJobs``

Nothing is guessed: a store that does not answer is a StorageUnavailableError, and every call may be repeated until it
does, or until it is a FencedError because this process leads no more. No other process may remove a handle of this
leader's jobs, since the store refuses all epochs but this one. Blocking, for any thread; changes of one job wait for
each other.

Held by: tests/dispatcher/test_job_storage.py
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

from engine.dispatcher.job_handle import JobHandle, decode_handle
from engine.dispatcher.live_jobs import LiveJobs
from engine.errors import EngineError, FencedError, ResourceError
from engine.ids import JobId
from engine.jobmaster.job_commit import StorageUnavailableError
from ha.interfaces import ForeignStateError, StaleEpochError, StateHandleStore, StateUnavailableError

T = TypeVar("T")

_log = logging.getLogger(__name__)

_JOB_ID = re.compile(r"[0-9a-f]{32}")


class NoHandleError(EngineError):
    """A job is cleaned already."""


class JobHandles:
    """Handles under the epoch of one leader.

    Args:
        store: where they are.
        live: jobs of this leader.
        is_leading: whether it is worth to ask again.
    """

    def __init__(self, store: StateHandleStore, live: LiveJobs, epoch: int, is_leading: Callable[[], bool]) -> None:
        self._store = store
        self._live = live
        self._epoch = epoch
        self._is_leading = is_leading

    def names(self) -> tuple[str, ...]:
        """Return the names of all handles."""
        return tuple(self._ask(self._store.names))

    def job_ids(self) -> tuple[JobId, ...]:
        """Return the jobs that have handles; others' nodes are left alone."""
        names = self.names()
        foreign = [name for name in names if _JOB_ID.fullmatch(name) is None]
        if foreign:
            _log.warning("these are no handles of jobs, they are left alone: %s", ", ".join(foreign))
        return tuple(JobId(name) for name in names if _JOB_ID.fullmatch(name) is not None)

    def read(self, job_id: JobId) -> JobHandle | None:
        """Return the handle of a job, or None; ForeignStateError when it is none of ours."""
        return self._read(job_id)[0]

    def read_own(self, job_id: JobId) -> JobHandle | None:
        """Read a handle as ``read`` does, for a job of this leader: ResourceError when it is damaged."""
        return self._ask_own(lambda: self._read(job_id))[0]

    def is_there(self, job_id: JobId) -> bool:
        """Whether a job has a handle."""
        return self._ask_own(lambda: self._store.read(job_id.value)) is not None

    def create(self, handle: JobHandle) -> bool:
        """Make a handle; return False when there is one."""
        content = msgspec.json.encode(handle)
        return self._ask_own(lambda: self._store.create(self._epoch, handle.job_id.value, content))

    def restore(self, job_id: JobId) -> None:
        """Make the handle of a job again that is this leader's."""
        with self._live.lock_of(job_id):
            job = self._live.get(job_id)
            if job is not None and self.create(job.handle):
                _log.warning("the handle of job %s was removed while this JobManager leads: made again", job_id)

    def existing(self, job_id: JobId) -> tuple[JobHandle, int]:
        """Return a handle and its version; NoHandleError when the job is cleaned already."""
        try:
            handle, version = self._read(job_id)
        except ForeignStateError:
            with self._live.lock_of(job_id):
                if self._live.get(job_id) is None:
                    raise
                self._ask(lambda: self._store.remove(self._epoch, job_id.value))
            handle = None
        if handle is None:
            self.restore(job_id)
            handle, version = self._ask_own(lambda: self._read(job_id))
        if handle is None:
            raise NoHandleError(f"job {job_id} is not stored any more")
        return handle, version

    def change(self, job_id: JobId, change: Callable[[JobHandle], JobHandle]) -> JobHandle:
        """Change a handle as it is now, and return what is in force."""
        with self._live.lock_of(job_id):
            while True:
                now, version = self.existing(job_id)
                new = change(now)
                content = msgspec.json.encode(new)
                if new == now or self._ask_own(self._replacing(job_id, content, version)):
                    self._live.note(new)
                    return new

    def remove(self, job_id: JobId) -> None:
        """Remove a handle; none is no error."""
        self._ask_own(lambda: self._store.remove(self._epoch, job_id.value))

    def _replacing(self, job_id: JobId, content: bytes, version: int) -> Callable[[], bool]:
        return lambda: self._store.replace(self._epoch, job_id.value, content, version)

    def _read(self, job_id: JobId) -> tuple[JobHandle | None, int]:
        state = self._ask(lambda: self._store.read(job_id.value))
        if state is None:
            return None, 0
        return decode_handle(job_id, state.content), state.version

    def _ask(self, request: Callable[[], T]) -> T:
        try:
            return request()
        except StaleEpochError as error:
            raise FencedError(self._epoch + 1, self._epoch) from error
        except StateUnavailableError as error:
            if not self._is_leading():
                raise FencedError(self._epoch + 1, self._epoch) from error
            raise StorageUnavailableError(f"handles of jobs cannot be reached: {error}") from error

    def _ask_own(self, request: Callable[[], T]) -> T:
        """Ask for the handle of a job of ours: that it is none any more keeps it from going on."""
        try:
            return self._ask(request)
        except ForeignStateError as error:
            raise ResourceError(f"the handle of a job is damaged: {error}") from error
