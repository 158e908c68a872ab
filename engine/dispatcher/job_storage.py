"""StoredJobs: what a leader keeps of its jobs, so that the next one goes on where it was.

    <folder>/identity                                which storage this is
    <folder>/jobs/<job id>/graph-<sha256[:16]>       msgpack JobGraph
    <folder>/jobs/<job id>/journal-<epoch>           events; only the one that the handle names counts
    <folder>/jobs/<job id>/decision-<sha256[:16]>.json     in force only when the handle names it
    <folder>/results/<job id>-<sha256[:16]>.json     JobEnd, likewise

    handle of a job: {job id, name, storage, epoch, graph, journal, decision, result}, in a StateHandleStore

The handle is the one point at which a job changes for all processes: it is created, its journal taken over, its outcome
decided, its end recorded, each in one write that the store refuses to a former leader. What a handle names is
on the disk before (file and folder synchronised), or in the object store, so a leader finds the old state or the new
one. A file is named by its content, so that a late request cannot change what a handle names; a journal is ended by
its reader.

    submit    put ──► new_journal ──► (JobMaster) ──► answer
    recover   job_ids ──► load ─┬─► StoredJob ──► events ──► new_journal ──► take_over ──► (JobMaster)
                                └─► StoredEnd ──► (history) ──► clean
    end       decide ──► record ──► (history) ──► clean: staging, files, handle, result file
    mend      now and then while it leads: what was removed of its jobs (folders, graph, journal, handle)

Blocking, for any thread. Nothing is guessed: a handle store that does not answer is a StorageUnavailableError, and each
call may be repeated until it does, or until it is a FencedError because this process leads no more. The digest of every
file is compared; what is damaged is a DamagedJobError, what cannot be read or written at present an OSError. A handle
that is gone though the job is this leader's is made again by the call that needs it next, or by ``mend``: no other
process may remove it, since the store refuses all epochs but this one.

Source: Flink's JobGraphStore, JobResultStore and their StateHandleStore.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable

import msgspec

from engine.clock import SystemClock
from engine.commit.decision import Decision
from engine.commit.publish import publish
from engine.commit.result_record import JobResultRecord
from engine.commit.targets import target_named
from engine.dispatcher.job_archive import EndedJob
from engine.dispatcher.job_files import JobFiles
from engine.dispatcher.job_handle import (
    BrokenJobError,
    DamagedJobError,
    JobElsewhereError,
    JobHandle,
    StorageElsewhereError,
    StoredEnd,
    StoredFile,
    StoredJob,
    StoredResult,
    bare_end,
    outputs_of,
)
from engine.dispatcher.job_handles import JobHandles, NoHandleError
from engine.dispatcher.live_jobs import LiveJob, LiveJobs
from engine.dispatcher.storage_folder import StorageFolder
from engine.dispatcher.storage_of_job import StorageOfJob
from engine.errors import FencedError, ResourceError
from engine.gateways.failure_info import failure_info
from engine.graph.deployment import Staging
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.jobmaster.job_commit import JobEnd, JobStorage
from engine.jobmaster.job_event import JobEvent
from engine.jobmaster.job_journal import FileJournal, Journal, NoJournal
from ha.interfaces import ForeignStateError, StateHandleStore

_log = logging.getLogger(__name__)

_NAME_CHARACTERS_MAX = 1000


class StoredJobs:
    """The jobs of a cluster, under the epoch of one leader.

    Args:
        folder: of this cluster alone, or a prefix of an object store; made when it is not there.
        handles: where the handles are.
        epoch: under which everything is written.
        is_leading: whether it is worth to ask again.
        is_durable: False where nothing need outlive the process: then nothing is synchronised.
    """

    def __init__(
        self,
        folder: str,
        handles: StateHandleStore,
        epoch: int,
        is_leading: Callable[[], bool] = lambda: True,
        is_durable: bool = True,
    ) -> None:
        self._folder = StorageFolder(folder, is_durable)
        self._live = LiveJobs()
        self._handles = JobHandles(handles, self._live, epoch, is_leading)
        self._files = JobFiles(self._folder, epoch)
        self._epoch = epoch
        self._is_leading = is_leading

    @property
    def is_in_store(self) -> bool:
        """Whether the jobs lie in an object store."""
        return self._folder.is_in_store

    # ---- one leader after the other ----

    def open(self) -> None:
        """Make the folder where it is not there; raises OSError."""
        self._folder.open()

    def mend(self) -> None:
        """Store again what was removed of this leader's jobs.

        Raises: StorageElsewhereError when the folder is another one, or not mounted; FencedError; OSError.
        """
        if not self._is_leading():
            raise FencedError(self._epoch + 1, self._epoch)
        if self._folder.mend():
            _log.warning("%s was removed in part or whole while this JobManager leads: made again", self._folder.path)
        if not self._live.ids():
            return
        names = self._handles.names()
        for job_id in self._live.ids():
            with self._live.lock_of(job_id):
                job = self._live.get(job_id)
                if job is not None:  # else it was cleaned meanwhile
                    self._mend_job(job, has_handle=job_id.value in names)

    def _mend_job(self, job: LiveJob, *, has_handle: bool) -> None:
        job_id, graph = job.handle.job_id, job.handle.graph
        if not self._files.is_there(job_id, graph.file):
            self._folder.make_job(job_id)
            stored = self._files.store_graph(job.job_graph)
            if stored != graph:  # another version of this program has stored it
                self._handles.change(job_id, lambda now: msgspec.structs.replace(now, graph=stored))
            _log.warning("the graph of job %s was removed while this JobManager leads: stored again", job_id)
        journal = self._live.journal(job_id)
        if isinstance(journal, FileJournal) and journal.mend():
            _log.warning("the journal of job %s was removed while this JobManager leads: written again", job_id)
        if not has_handle:
            self._handles.restore(job_id)

    def job_ids(self) -> tuple[JobId, ...]:
        """Return the jobs that have handles; others' nodes are left alone."""
        return self._handles.job_ids()

    def load(self, job_id: JobId) -> StoredJob | StoredEnd | None:
        """Return a job, or how it ended; None when its handle is gone.

        Raises: ForeignStateError (not one of our handles), BrokenJobError, JobElsewhereError, VersionMismatchError,
        OSError.
        """
        handle = self._handles.read(job_id)
        if handle is None:
            return None
        if handle.result is not None:
            journal = self._files.path(job_id, handle.journal)
            return StoredEnd(handle, self._folder.ended_job(handle, handle.result), journal)
        journal = self._files.path(job_id, handle.journal)
        identity = self._folder.identity
        if handle.storage != identity or self._folder.read_identity() != identity:
            raise JobElsewhereError(
                handle,
                journal,
                f"what is stored of it is not in {self._folder.path}: every JobManager needs the same "
                "high-availability.storageDir; is it mounted, or was it removed?",
            )
        try:
            decision = self._files.decision(handle)  # first: whatever a newer program decided is left to that one
            return StoredJob(handle, self._files.graph(handle), decision, journal)
        except DamagedJobError as error:
            raise BrokenJobError(handle, journal, str(error)) from error

    def events(self, job_id: JobId, journal: str) -> tuple[JobEvent, ...]:
        """Return the events of a former leader's journal, to which it adds none any more. Raises OSError."""
        self._files.end_journal(journal)
        return self._files.events(job_id, journal)

    def new_journal(self, job_id: JobId, events: Iterable[JobEvent] = ()) -> Journal:
        """Return a new journal of this leader for a job, with its events so far; on a full disk it keeps nothing."""
        if not self._folder.is_durable:
            return NoJournal()
        try:
            journal = FileJournal.create(self._files.journal_path(job_id), job_id, self._epoch, events)
        except OSError as error:
            _log.warning("job %s runs without a journal, and a new leader would repeat what it does: %s", job_id, error)
            return NoJournal()
        self._live.add_journal(job_id, journal)
        return journal

    def take_over(self, stored: StoredJob) -> None:
        """Make this leader's journal the one in force: it is written. NoHandleError: the job has ended meanwhile."""
        job_id = stored.handle.job_id
        own = self._files.journal_path(job_id)
        taken = {"journal": own.rpartition("/")[2], "epoch": self._epoch}
        with self._live.lock_of(job_id):
            handle = self._handles.change(
                job_id, lambda now: now if now.result is not None else msgspec.structs.replace(now, **taken)
            )
            if handle.result is not None:
                raise NoHandleError(f"job {job_id} has ended before it was taken over")
            self._live.add(handle, stored.job_graph)
        if stored.journal != own:
            self._folder.delete(stored.journal)

    # ---- the life of a job ----

    def put(self, job_graph: JobGraph, order: int = 0) -> bool:
        """Store a job; return False when one of that id is stored already and is not this leader's.

        Raises: ResourceError when it cannot be stored, and nothing is then.
        """
        job_id = job_graph.job_id
        try:
            self._folder.mend()
            self._folder.make_job(job_id)
            graph = self._files.store_graph(job_graph)
        except (OSError, StorageElsewhereError) as error:
            if isinstance(error, OSError):
                self._folder.remove_empty_job(job_id)
            raise ResourceError(
                f"job {job_id} cannot be stored in {self._folder.path}: {getattr(error, 'strerror', None) or error}"
            ) from error
        handle = JobHandle(
            job_id,
            job_graph.name[:_NAME_CHARACTERS_MAX],
            self._folder.identity,
            self._epoch,
            graph,
            self._files.journal_path(job_id).rpartition("/")[2],
            created_ms=SystemClock().wall_ms(),
            outputs=outputs_of(job_graph),
            order=order,
        )
        with self._live.lock_of(job_id):
            if self._handles.create(handle):
                self._live.add(handle, job_graph)
                return True
        in_force = self._handles.read_own(job_id)
        # Its own submission, whose answer was lost on the way to or from the store.
        if in_force is None or (in_force.epoch, in_force.graph) != (handle.epoch, handle.graph):
            return False
        self._live.add(in_force, job_graph)
        return True

    def journal_path(self, job_id: JobId) -> str:
        """Return the path of this leader's journal of a job."""
        return self._files.journal_path(job_id)

    def of(self, job_id: JobId) -> JobStorage:
        """Return the storage of one job, for its JobMaster."""
        return StorageOfJob(self, job_id)

    def cancel(self, job_id: JobId) -> None:
        """Record that a job is to be cancelled, under any leader."""
        with contextlib.suppress(NoHandleError):
            self._handles.change(job_id, lambda now: msgspec.structs.replace(now, is_cancelled=True))

    @property
    def cluster(self) -> str:
        """Identity of the storage; "" where nothing outlives the process."""
        return self._folder.identity if self._folder.is_durable else ""

    def is_over(self, job_id: JobId) -> bool:
        """Whether a job is stored no more, or was never."""
        return self._live.get(job_id) is None and not self._handles.is_there(job_id)

    def ended(self, job_id: JobId) -> JobResultRecord | None:
        """Return the record of a job's end, or None."""
        handle = self._handles.read_own(job_id)
        if handle is None or handle.result is None:
            return None
        return JobResultRecord(job_id, handle.name, handle.result.status, handle.epoch, 0)

    def decide(self, decision: Decision) -> Decision:
        """Make a decision the one in force unless there is one; return that one."""
        job_id = decision.job_id
        handle, _ = self._handles.existing(job_id)
        if handle.decision is None:
            try:
                self._folder.mend()
                self._folder.make_job(job_id)
                file = self._files.store_decision(decision)
            except (OSError, StorageElsewhereError) as error:
                raise ResourceError(
                    f"the output of job {job_id} is not published, since the decision on it cannot be stored in "
                    f"{self._folder.path}: {getattr(error, 'strerror', None) or error}"
                ) from error
            handle = self._handles.change(
                job_id,
                lambda now: now if now.decision is not None else msgspec.structs.replace(now, decision=file),
            )
        in_force = self._files.decision(handle)
        assert in_force is not None, "a decision that was taken stays"
        return in_force

    def record(self, end: JobEnd) -> None:
        """Make this the end of a job unless it has one."""
        job_id = end.record.job_id
        if self._handles.existing(job_id)[0].result is not None:
            return
        file: StoredFile | None = None
        try:
            self._folder.mend()
            file = self._files.store_end(end)
        except (OSError, StorageElsewhereError) as error:
            _log.warning("details of the end of job %s are not stored: %s", job_id, error)
        result = StoredResult(end.record.status, file)
        self._handles.change(
            job_id, lambda now: now if now.result is not None else msgspec.structs.replace(now, result=result)
        )

    def end_unread(self, job_id: JobId) -> StoredEnd:
        """Record that a job which cannot be read was cancelled, unless it has an end; what was decided is published.

        Raises: NoHandleError when it has ended and is removed; ResourceError when what was decided cannot be published.
        """
        handle, _ = self._handles.existing(job_id)
        try:
            job = self._published(handle) or bare_end(job_id, handle.name, "CANCELED")
        except OSError as error:
            raise ResourceError(
                f"job {job_id} is not cancelled: its output was to be published, which cannot be done yet: {error}"
            ) from error
        return self._end(handle, self._files.path(job_id, handle.journal), job)

    def end_broken(self, error: BrokenJobError) -> StoredEnd:
        """Record the end of a job whose files are damaged: what was decided is published, anything else has failed."""
        handle = error.handle
        job = self._published(handle)
        if job is None:
            job = bare_end(handle.job_id, handle.name, "FAILED", failure_info(error))
            # Before clients are told: a job that has failed left nothing behind.
            self._remove_stagings(handle.job_id, error.journal)
        try:
            return self._end(handle, error.journal, job, str(error))
        except NoHandleError:  # it was removed: then there is nothing to record
            return StoredEnd(handle, job, error.journal)

    def _published(self, handle: JobHandle) -> EndedJob | None:
        """Publish what was decided on a job without a JobMaster, and return its end; None: nothing can be."""
        try:
            decision = self._files.decision(handle)
        except DamagedJobError:
            return None
        if decision is None:
            return None
        publish(decision)
        return bare_end(handle.job_id, handle.name, "FINISHED")

    def _end(self, handle: JobHandle, journal: str, job: EndedJob, reason: str = "") -> StoredEnd:
        """Record an end unless there is one, and return that one."""
        record = JobResultRecord(handle.job_id, handle.name, job.outcome.status, self._epoch, 0, reason)
        self.record(JobEnd(record, job.overview, job.outcome, job.details))
        handle, _ = self._handles.existing(handle.job_id)
        if handle.result is not None and handle.result.status != job.outcome.status:
            job = self._folder.ended_job(handle, handle.result)
        return StoredEnd(handle, job, journal)

    def clean(self, job_id: JobId, journal: str | None = None, *, keeps_end: bool = False) -> None:
        """Remove everything of a job that has ended, the handle before its result; idempotent. Raises OSError.

        ``journal`` is of a leader that died before it had removed staging. With ``keeps_end`` handle and result stay:
        the next leader learns from them how the job has ended.
        """
        self._live.forget(job_id)
        if journal is not None:
            self._remove_stagings(job_id, journal)
        self._folder.delete(self._folder.job(job_id))
        if keeps_end:
            return
        self._handles.remove(job_id)
        for result in self._folder.results(job_id):
            self._folder.delete(result)

    def _remove_stagings(self, job_id: JobId, journal: str) -> None:
        for staging in self._stagings(job_id, journal):
            target_named(staging.target).abort(staging, job_id)

    def _stagings(self, job_id: JobId, journal: str) -> set[Staging]:
        """Return the places in which a job may have staged, by its journal, and by the names of its outputs."""
        found = self._files.staged_by_journal(job_id, journal)
        with contextlib.suppress(ForeignStateError):
            handle = self._handles.read(job_id)
            if handle is not None:
                found |= self._files.staged_by_name(handle)
        return found
