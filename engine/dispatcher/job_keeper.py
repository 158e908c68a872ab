"""JobKeeper: what a Dispatcher keeps of its jobs, on the event loop; the work itself is done in threads.

    put, cancel, job_ids, take          a storage that does not answer is asked again while this process leads
    forget(job)                         history, blobs, storage: each step until it is done, beside everything else
    list_ended()                        a history that cannot be listed when this process begins to lead is listed later
    keep_whole()                        what is removed from the storage while this process leads is stored again

Without a storage jobs end with the process, and only their history is kept.

Held by: tests/dispatcher/test_recovery.py
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from engine.dispatcher.job_archive import EndedJob
from engine.dispatcher.job_handle import BrokenJobError, StorageElsewhereError, StoredEnd, StoredJob, TakenJob
from engine.dispatcher.job_store import JobStore
from engine.errors import FencedError, ResourceError
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.jobmaster.job_commit import StorageUnavailableError
from engine.jobmaster.job_journal import Journal, NoJournal
from engine.jobmaster.output_steps import STORAGE_TOLD_S

if TYPE_CHECKING:
    from engine.dispatcher.job_storage import StoredJobs

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.2
_LAST_PAUSE_S = 30.0
#: seconds between two checks whether the storage is whole, in a folder, and in an object store, which takes requests
_MEND_PAUSE_S, _STORE_MEND_PAUSE_S = 2.0, 30.0


def pauses_s() -> Iterable[float]:
    """Return the seconds between tries, without end."""
    pause_s = _FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, _LAST_PAUSE_S)


class JobKeeper:
    """Storage, history and blobs of the jobs of one leader.

    Args:
        ended: jobs that have ended.
        storage: of jobs that have not; None: nowhere.
        blocking_work: threads; None: the loop's own.
        remove_blobs: of a job that has ended.
        open_tries: so often a storage that cannot be opened is tried; None: for ever.
    """

    def __init__(
        self,
        ended: JobStore,
        storage: StoredJobs | None = None,
        blocking_work: Executor | None = None,
        remove_blobs: Callable[[JobId], Awaitable[None]] | None = None,
        open_tries: int | None = None,
    ) -> None:
        self.ended = ended
        self._storage = storage
        self._blocking_work = blocking_work
        self._remove_blobs = remove_blobs
        self._open_tries = open_tries

    async def put(self, job_graph: JobGraph, order: int) -> Journal | None:
        """Store a job and return its journal; None when there is one of that id. Raises ResourceError."""
        storage = self._storage
        if storage is None:
            return NoJournal()
        if not await self._ask(storage.put, job_graph, order):
            return None
        return await self._run(storage.new_journal, job_graph.job_id)

    async def drop(self, job_id: JobId) -> None:
        """Remove a job that was stored and could not be started."""
        if self._storage is not None:
            await self._ask(self._storage.clean, job_id)

    async def cancel(self, job_id: JobId) -> None:
        """Store that a job is to be cancelled."""
        if self._storage is not None:
            await self._ask(self._storage.cancel, job_id)

    async def job_ids(self) -> tuple[JobId, ...]:
        """Open the storage and return what it holds; waits for one that cannot be read or written.

        Raises: ResourceError after the tries that it has.
        """
        if self._storage is None:
            return ()
        for tries, pause_s in enumerate(pauses_s(), 1):
            try:
                await self._ask(self._storage.open)
                return await self._ask(self._storage.job_ids)
            except OSError as error:
                _log.error("jobs cannot be recovered yet, and this JobManager cannot lead: %s", error)
                if tries == self._open_tries:
                    raise ResourceError(
                        f"high-availability.storageDir cannot be opened: {error}. This JobManager ends, so that another"
                        " one leads"
                    ) from error
            await asyncio.sleep(pause_s)
        raise AssertionError("pauses do not end")

    async def take(self, job_id: JobId) -> TakenJob | StoredEnd | None:
        """Load a stored job and take it over; raises what ``StoredJobs.load`` does."""
        storage = self._storage
        assert storage is not None, "there is nothing to take"
        found = await self._ask(storage.load, job_id)
        if not isinstance(found, StoredJob):
            return found
        events = await self._run(storage.events, job_id, found.journal)
        journal = await self._run(storage.new_journal, job_id, events)
        if not isinstance(journal, NoJournal):
            try:
                await self._ask(storage.take_over, found)
            except BaseException:
                await journal.close()
                raise
        return TakenJob(found, events, journal)

    async def list_ended(self) -> None:
        """List the history until that has been done once."""
        reason = ""
        for pause_s in pauses_s():
            if self.ended.is_listed:
                break
            await asyncio.sleep(pause_s)
            try:
                await self.ended.list_late()
                _log.info("ended jobs are known now")
            except OSError as error:
                reason = _told("ended jobs cannot be listed", error, reason)

    async def keep_whole(self) -> None:
        """Store again what is removed, for ever.

        Raises: ResourceError after the tries that it has with a folder that is another one.
        """
        if self._storage is None:
            return
        reason, tries = "", 0
        while True:
            await asyncio.sleep(_STORE_MEND_PAUSE_S if self._storage.is_in_store else _MEND_PAUSE_S)
            try:
                await self._run(self._storage.mend)
                reason, tries = "", 0
            except FencedError:
                return
            except StorageElsewhereError as error:
                tries += 1
                if tries == self._open_tries:
                    raise ResourceError(f"{error}. This JobManager ends, so that another one leads") from error
                reason = _told("the storage is not whole", error, reason)
            except (OSError, ResourceError) as error:
                reason = _told("the storage is not whole", error, reason)

    async def end_unread(self, job_id: JobId) -> StoredEnd:
        """Record that a job which cannot be read was cancelled."""
        assert self._storage is not None, "there is nothing stored"
        return await self._ask(self._storage.end_unread, job_id)

    async def end_broken(self, error: BrokenJobError) -> StoredEnd | None:
        """Record the end of a job that cannot be run; None when this process leads no more."""
        assert self._storage is not None, "there is nothing stored"
        for pause_s in pauses_s():
            try:
                return await self._ask(self._storage.end_broken, error)
            except FencedError:
                return None
            except OSError as failure:
                _log.error("the end of job %s is not complete: %s", error.handle.job_id, failure)
            await asyncio.sleep(pause_s)
        raise AssertionError("pauses do not end")

    @property
    def has_remains(self) -> bool:
        """Whether jobs that have ended leave anything to be written or removed."""
        return self.ended.has_archive or self._remove_blobs is not None or self._storage is not None

    async def forget(self, job: EndedJob, journal: str | None = None, has_tried: asyncio.Event | None = None) -> None:
        """Keep the history of a job that has ended, and remove everything else.

        The record of its end in the storage stays until the history is written: a leader may die in between.

        Args:
            job: is kept in memory until it is written.
            journal: of a job that was recovered when it had ended.
            has_tried: set after the first attempt.
        """
        job_id = job.overview.job_id
        is_written, reason = False, ""
        for pause_s in pauses_s():
            try:
                if not is_written:
                    reason = await self._unwritten_reason(job, reason)
                    is_written = not reason
                if self._remove_blobs is not None:
                    await self._remove_blobs(job_id)
                if self._storage is not None:
                    await self._ask(self._storage.clean, job_id, journal, keeps_end=not is_written)
                if is_written:
                    return
            except FencedError:
                return  # the next leader goes on with it
            except (OSError, ResourceError) as error:
                _log.warning("job %s has ended, but not all of it could be removed: %s", job_id, error)
            finally:
                if has_tried is not None:
                    has_tried.set()
            await asyncio.sleep(pause_s)

    async def _unwritten_reason(self, job: EndedJob, before: str) -> str:
        """Write a job to the history; return why there is no room there, ``before`` being the last one, or ""."""
        if not self.ended.has_archive:
            return ""
        job_id = job.overview.job_id
        try:
            size = await self._run(self.ended.write, job)
        except OSError as error:
            if not before:
                _log.warning("job %s has ended, but cannot be kept yet: %s", job_id, error)
            return before or str(error)
        self.ended.written(job_id, size)
        if before:
            _log.info("job %s is kept now", job_id)
        return ""

    async def _ask(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Ask the storage until it answers; FencedError when this process leads no more."""
        loop, told_s = asyncio.get_running_loop(), -STORAGE_TOLD_S
        for pause_s in pauses_s():
            try:
                return await self._run(call, *arguments, **named)
            except StorageUnavailableError as error:
                if loop.time() - told_s >= STORAGE_TOLD_S:
                    told_s = loop.time()
                    _log.warning("%s; asking again", error)
            await asyncio.sleep(min(pause_s, 2.0))
        raise AssertionError("pauses do not end")

    async def _run(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._blocking_work, lambda: call(*arguments, **named))


def _told(what: str, error: Exception, before: str) -> str:
    """Log what is wrong and why, once as long as that is the same."""
    if str(error) != before:
        _log.warning("%s: %s", what, error)
    return str(error)
