"""JobStore: jobs that have ended stay known for a while, for clients that ask late and for people.

    add(job), refresh() ─► get(job_id), find(job_id), overviews ─► forgotten: too many (the oldest first), or too old
    write(job) in any thread ─► written(job_id, size): it is in a file, memory may forget it

With an archive jobs lie in files, those asked for last in memory as well up to ``cache_bytes``, and a store that is
made over the same folder later knows them. Without one they are in memory only. A job that was only suspended here
has not ended: another leader goes on with it, so it is kept in no file.

Source: Flink's ExecutionGraphInfoStore.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict

from engine.clock import Clock, SystemClock
from engine.dispatcher.job_archive import EndedJob, JobArchive
from engine.gateways.messages import JobOverview
from engine.ids import JobId

_log = logging.getLogger(__name__)

_SUSPENDED = "SUSPENDED"


class JobStore:
    """The latest ended jobs, oldest first.

    Args:
        limit: jobs that are kept.
        archive: where they outlive the process; None: nowhere.
        cache_bytes: of files that are kept in memory as well.
        expiration_ms: a job is forgotten so long after its end; None: never.
        clock: tells how late it is.
        is_patient: whether an archive that cannot be listed at present is listed later, by ``list_late``.
    """

    def __init__(
        self,
        limit: int = 256,
        archive: JobArchive | None = None,
        cache_bytes: int = 0,
        expiration_ms: int | None = None,
        clock: Clock | None = None,
        *,
        is_patient: bool = False,
    ) -> None:
        self._limit = limit
        self._archive = archive
        self._cache_bytes = cache_bytes
        self._expiration_ms = expiration_ms
        self._clock = clock or SystemClock()
        self._overviews: dict[JobId, JobOverview] = {}
        #: archived jobs by last use, each with the size of its file
        self._cache: OrderedDict[JobId, tuple[EndedJob, int]] = OrderedDict()
        self._cached_bytes = 0
        #: False until the archive has been listed
        self.is_listed = archive is None
        if archive is not None:
            try:
                self._add_listed(archive.overviews())
            except OSError as error:
                if not is_patient:
                    raise
                _log.warning("ended jobs cannot be listed at present, and are not known until then: %s", error)

    def add(self, job: EndedJob) -> None:
        """Keep a job, in memory until it is written; the oldest one goes when there are too many."""
        job_id = job.overview.job_id
        self._forget(job_id)
        self._overviews[job_id] = job.overview
        # What is in no file has size 0 and stays in memory: there is no other copy.
        self._remember(job, 0)
        self._forget_some()

    @property
    def has_archive(self) -> bool:
        """Whether there is something to write."""
        return self._archive is not None

    def write(self, job: EndedJob) -> int:
        """Write a job to its file, in any thread, and return the size of that; raises OSError."""
        return self._archive.write(job) if self._archive is not None and job.overview.status != _SUSPENDED else 0

    def written(self, job_id: JobId, size: int) -> None:
        """Take note that a job is in a file; memory may forget it."""
        job, _ = self._cache.get(job_id, (None, 0))
        if job is not None and size:
            del self._cache[job_id]
            self._remember(job, size)

    def get(self, job_id: JobId) -> EndedJob | None:
        """Return a job, or None."""
        self._forget_some()
        cached = self._cache.get(job_id)
        if cached is not None:
            self._cache.move_to_end(job_id)
            return cached[0]
        if self._archive is None or not self.is_known(job_id):
            return None
        was_unread = self.is_unread(job_id)
        return self._kept(job_id, *self._archive.read_sized(job_id), was_unread=was_unread)

    async def find(self, job_id: JobId) -> EndedJob | None:
        """Return a job as ``get`` does; the loop goes on while a file is read."""
        if self._archive is None or job_id in self._cache or not self.is_known(job_id):
            return self.get(job_id)
        was_unread = self.is_unread(job_id)
        return self._kept(job_id, *await asyncio.to_thread(self._archive.read_sized, job_id), was_unread=was_unread)

    def is_known(self, job_id: JobId) -> bool:
        """Whether a job has ended and is not forgotten."""
        self._forget_some()
        return job_id in self._overviews or self.is_unread(job_id)

    def is_unread(self, job_id: JobId) -> bool:
        """Whether a job has ended whose file could not be read the last time."""
        return self._archive is not None and job_id in self._archive.unread

    def _kept(self, job_id: JobId, job: EndedJob | None, size: int, *, was_unread: bool) -> EndedJob | None:
        if job is None:
            if not self.is_unread(job_id):
                self._forget(job_id)
        elif (was_unread or job_id in self._overviews) and job_id not in self._cache:
            self._overviews.setdefault(job_id, job.overview)
            self._remember(job, size)
        return job

    @property
    def overviews(self) -> tuple[JobOverview, ...]:
        """All jobs, oldest first."""
        self._forget_some()
        return tuple(self._overviews.values())

    async def list_late(self) -> None:
        """List the archive beside the jobs that have ended meanwhile. Raises OSError."""
        if self._archive is not None:
            self._add_listed(await asyncio.to_thread(self._archive.overviews))

    async def look_for(self, job_id: JobId) -> None:
        """Have a job known that has ended, while the archive is not listed; a file that cannot be read is none."""
        assert self._archive is not None, "an archive that is not listed is there"
        job = await asyncio.to_thread(self._archive.read, job_id)
        if job is not None:
            self._overviews.setdefault(job_id, job.overview)
        elif not self.is_listed:
            self._archive.unread.discard(job_id)

    def _add_listed(self, found: list[JobOverview]) -> None:
        self._overviews = {overview.job_id: overview for overview in found} | self._overviews
        self.is_listed = True
        self._forget_some()

    async def refresh(self) -> None:
        """Look what the archive holds now: another process may have written to it. Raises OSError."""
        if self._archive is None:
            return
        found = await asyncio.to_thread(self._archive.overviews)
        self._overviews = {overview.job_id: overview for overview in found}
        for job_id in [job_id for job_id in self._cache if job_id not in self._overviews]:
            self._forget(job_id)
        self._forget_some()

    def _remember(self, job: EndedJob, size: int) -> None:
        self._cache[job.overview.job_id] = (job, size)
        self._cached_bytes += size
        if self._cached_bytes <= self._cache_bytes:
            return
        for job_id, (_, other_size) in list(self._cache.items()):
            if self._cached_bytes <= self._cache_bytes:
                break
            if other_size:
                del self._cache[job_id]
                self._cached_bytes -= other_size

    def _forget_some(self) -> None:
        """Remove jobs that are too old, and the oldest where there are too many."""
        oldest_ms = None if self._expiration_ms is None else self._clock.wall_ms() - self._expiration_ms
        while self._overviews:
            job_id, overview = next(iter(self._overviews.items()))
            is_expired = oldest_ms is not None and 0 <= overview.end_ms < oldest_ms
            if not is_expired and len(self._overviews) <= self._limit:
                return
            self._forget(job_id)
            if self._archive is not None:
                self._archive.remove(job_id)

    def _forget(self, job_id: JobId) -> None:
        self._overviews.pop(job_id, None)
        _, size = self._cache.pop(job_id, (None, 0))
        self._cached_bytes -= size
