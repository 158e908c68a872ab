"""Dispatcher: the endpoint that clients submit to.

    SubmitJob ─► stored ─► JobMaster (one for each job, in this process) ─► its end ─► history ─► nothing is left of it
    recover   ─► what the leader before has stored ─► start ─► JobMasters that go on with it

Submission is idempotent by job id: a client that got no answer sends the same JobGraph again, to this leader or to the
next one. Questions about a running job go to its JobMaster, about an ended one to the store. A client that waits for
the end of a job hears of it when nothing is left but its history, or when that could not be done at once. When the
Dispatcher stops, so do its JobMasters: their jobs are SUSPENDED here, for the next leader to take up.

A stored job that cannot be read is tried again and again; one that is damaged, or whose files are not in the storage
folder for some seconds, is FAILED, or FINISHED where its outcome was decided. Others do not wait for either. A client
that ends a job without a JobMaster has TaskExecutors told that it is over: they keep what they have of it until then.

Source: Flink's Dispatcher.
Held by: tests/dispatcher/test_recovery.py
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from engine.client.leader_answers import NOT_RECOVERED
from engine.clock import SystemClock
from engine.closing import close_all_async
from engine.dispatcher.job_archive import EndedJob
from engine.dispatcher.job_handle import BrokenJobError, JobElsewhereError, StoredEnd, TakenJob
from engine.dispatcher.job_handles import NoHandleError
from engine.dispatcher.job_keeper import JobKeeper, pauses_s
from engine.dispatcher.job_store import JobStore
from engine.errors import ConfigurationError, EngineError, FencedError, JobNotFoundError, ResourceError
from engine.fault_points import reach
from engine.gateways.dispatcher import DispatcherGateway
from engine.gateways.job_details import JobDetails, JobExceptions, RequestJobDetails, RequestJobExceptions
from engine.gateways.job_queue import JobTurn, RequestWaitingJobs, WaitingJob
from engine.gateways.messages import (
    CancelJob,
    JobList,
    JobOutcome,
    JobOverview,
    JobProgress,
    ListJobs,
    RequestJobOutcome,
    RequestJobProgress,
    RequestJobStatus,
    SubmitJob,
    SubmitReply,
    VertexProgress,
)
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.insight.cluster_events import CLUSTER_EVENTS
from engine.jobmaster.job_journal import Journal
from engine.jobmaster.job_master import JobMaster
from engine.jobmaster.job_master_settings import job_turn
from engine.jobmaster.job_summary import add_counters
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.fencing import LeaderFence
from engine.rpc.gateway import Gateway, RpcService
from engine.rpc.request import ACKNOWLEDGE, Acknowledge
from ha.interfaces import ForeignStateError

_log = logging.getLogger(__name__)

T = TypeVar("T", JobOverview, JobProgress, JobDetails)

DISPATCHER_ADDRESS = "dispatcher"
#: seconds for which jobs wait for another one whose files are slow to read
_RECOVERY_S = 10.0
#: seconds until a job without files in the storage folder is given up: a folder may be mounted late
_ELSEWHERE_S = 5.0
#: seconds for which the report of a job's end waits for its clean-up
_REMAINS_S = 5.0

#: factory of the JobMaster of a new or recovered job under the Dispatcher's epoch; the last argument is the job's place
#: in the order of submissions
JobMasterFactory = Callable[[JobGraph, Journal, TakenJob | None, int], JobMaster]


class _RunningJob:
    """A job that has a JobMaster."""

    def __init__(self, job_master: JobMaster) -> None:
        self.job_master = job_master
        #: outcome of the job, set when it may be reported
        self.outcome: asyncio.Future[JobOutcome] = asyncio.get_running_loop().create_future()


class Dispatcher(RpcEndpoint):
    """Jobs of the cluster, under one leader epoch."""

    protocol = DispatcherGateway

    def __init__(
        self,
        rpc: RpcService,
        epoch: int,
        job_master_factory: JobMasterFactory,
        on_fatal: Callable[[BaseException], None] | None = None,
        keeper: JobKeeper | None = None,
        on_over: Callable[[JobId], None] = lambda job_id: None,
        on_ended: Callable[[JobOverview], None] = lambda job: None,
    ) -> None:
        super().__init__(DISPATCHER_ADDRESS, LeaderFence(epoch), on_fatal)
        self._rpc = rpc
        self._epoch = epoch
        self._job_master_factory = job_master_factory
        self._keeper = keeper or JobKeeper(JobStore())
        self._ended = self._keeper.ended
        self._running: dict[JobId, _RunningJob] = {}
        #: events of running submissions, set when each is over
        self._submissions: dict[JobId, asyncio.Event] = {}
        #: stored jobs that could not be read yet, with the reason
        self._unread: dict[JobId, str] = {}
        #: unread jobs that are being cancelled
        self._cancelled_unread: set[JobId] = set()
        #: recovered jobs, started by ``start``
        self._recovered: list[TakenJob] = []
        self._is_started = False
        #: callback for each job that has ended without a JobMaster
        self._on_over = on_over
        #: callback for each job that has ended, once under this leader
        self._on_ended = on_ended
        self._elsewhere_until_s = 0.0
        #: number of the last submission; it continues those of earlier leaders
        self._last_order = 0

    # ---- what the leader before has left ----

    async def recover(self) -> None:
        """Read what is stored. What is known then is all that there is, so others may hear that this one leads."""
        job_ids = await self._keeper.job_ids()
        self._elsewhere_until_s = asyncio.get_running_loop().time() + _ELSEWHERE_S
        self._unread = dict.fromkeys(job_ids, "it is being read")
        reading = [self.spawn(self._recover(job_id), f"recovery of {job_id}") for job_id in job_ids]
        if reading:
            await asyncio.wait(reading, timeout=_RECOVERY_S)
            unread = len(self._unread) - len(self._recovered)
            _log.info("%d stored jobs, %d of which cannot be read yet", len(reading), unread)

    def start(self) -> None:
        """Start the recovered jobs; all components can be reached."""
        self.spawn(self._keeper.keep_whole(), "storage that is whole")
        self.spawn(self._keeper.list_ended(), "ended jobs that are listed")
        self._is_started = True
        for taken in sorted(self._recovered, key=lambda taken: taken.stored.handle.order):
            self._go_on(taken)
        self._recovered.clear()

    @property
    def recovered_turns(self) -> dict[JobId, JobTurn]:
        """Turns of the jobs that ``start`` is going to start, but for those whose settings cannot be read."""
        turns = {}
        for stored, _, _ in self._recovered:
            with contextlib.suppress(ConfigurationError):
                turns[stored.handle.job_id] = job_turn(stored.job_graph, stored.handle.order)
        return turns

    def is_known_job(self, job_id: JobId) -> bool:
        """Whether a job is not over: TaskExecutors keep what they have of it."""
        return job_id in self._running or job_id in self._unread or job_id in self._submissions

    def led_jobs(self) -> tuple[JobId, ...]:
        """Return the jobs that have a JobMaster."""
        return tuple(self._running)

    @property
    def running_job_ids(self) -> tuple[JobId, ...]:
        """Jobs that are not over."""
        return (*self._running, *self._unread, *self._submissions)

    async def _recover(self, job_id: JobId) -> None:
        """Try once, and where that fails again and again beside everything else."""
        if not await self._is_read(job_id):
            self.spawn(self._recover_later(job_id), f"recovery of {job_id}")

    async def _recover_later(self, job_id: JobId) -> None:
        for pause_s in pauses_s():
            await asyncio.sleep(pause_s)
            if job_id not in self._unread or await self._is_read(job_id):
                return

    async def _is_read(self, job_id: JobId) -> bool:
        """Read a stored job and do what it needs; return whether that is over."""
        try:
            found = await self._keeper.take(job_id)
        except FencedError:
            return True
        except ForeignStateError as error:
            _log.error("a stored job is not of this cluster and is left alone: %s", error)
        except BrokenJobError as error:
            return self._give_up(error)
        except Exception as error:  # whatever is wrong with one job is nothing to the others
            if job_id not in self._unread:
                return True  # it has ended meanwhile: its files are gone
            is_late = asyncio.get_running_loop().time() >= self._elsewhere_until_s
            if isinstance(error, JobElsewhereError) and is_late:
                return self._give_up(BrokenJobError(error.handle, error.journal, error.reason))
            if self._unread[job_id] != str(error):
                _log.error("job %s cannot be recovered yet: %r", job_id, error)
            self._unread[job_id] = str(error)
            return False
        else:
            if isinstance(found, TakenJob):
                self._last_order = max(self._last_order, found.stored.handle.order)
            if isinstance(found, StoredEnd):
                self._end_unread(found)
            elif found is not None and job_id not in self._unread:  # cancelled meanwhile
                await found.journal.close()
            elif found is not None and job_id in self._cancelled_unread:  # once more where that fails
                await found.journal.close()
                return False
            elif found is not None and not self._is_started:
                self._recovered.append(found)
                return True  # known as unread until ``start``
            elif found is not None:
                self._go_on(found)
                return True  # known as unread until it runs, or has ended
        self._unread.pop(job_id, None)
        return True

    def _give_up(self, error: BrokenJobError) -> bool:
        """Begin to end a job that no leader can run."""
        _log.error("%s", error)
        self.spawn(self._end_broken(error), f"end of {error.handle.job_id}")
        return True

    def _go_on(self, taken: TakenJob) -> None:
        stored, job_id = taken.stored, taken.stored.handle.job_id
        try:
            self._run(stored.job_graph, taken.journal, taken, stored.handle.order)
        except Exception as error:  # whatever is wrong with one job is nothing to the others
            _log.exception("job %s cannot go on", job_id)
            self.spawn(taken.journal.close(), f"journal of {job_id}")
            self.spawn(self._end_broken(BrokenJobError(stored.handle, stored.journal, repr(error))), f"end of {job_id}")
            return
        self._unread.pop(job_id, None)
        if stored.handle.is_cancelled:
            self.spawn(self._cancel(job_id), f"cancel {job_id}")

    async def _end_broken(self, error: BrokenJobError) -> None:
        """End a job that no leader can run any more."""
        ended = await self._keeper.end_broken(error)
        if ended is not None:
            self._end_unread(ended)

    def _end_unread(self, ended: StoredEnd) -> None:
        """Hear how a job without a JobMaster has ended; of a client, a read and a failure the first one tells it."""
        job_id = ended.handle.job_id
        if self._unread.pop(job_id, None) is not None:
            self._keep_ended(ended.job)
            self._on_over(job_id)
            self.spawn(self._keeper.forget(ended.job, ended.journal), f"remains of {job_id}")

    # ---- jobs ----

    async def submit_job(self, request: SubmitJob) -> SubmitReply:
        """Store and start a job, unless one of that id is known already."""
        job_id = request.job_graph.job_id
        if not self._ended.is_listed:
            await self._ended.look_for(job_id)
        while (submission := self._submissions.get(job_id)) is not None:
            await submission.wait()
        if self.is_known_job(job_id) or self._ended.is_known(job_id):
            return SubmitReply(job_id, is_new=False)
        self._submissions[job_id] = asyncio.Event()
        return await self.complete(self._submit(request.job_graph))

    async def _submit(self, job_graph: JobGraph) -> SubmitReply:
        job_id = job_graph.job_id
        # A clock that was set back, or is another machine's, changes nothing in the order.
        order = self._last_order = max(self._last_order + 1, SystemClock().wall_ms())
        try:
            journal = await self._keeper.put(job_graph, order)
            if journal is None:
                return SubmitReply(job_id, is_new=False)
            _log.info("job %s (%s) is submitted", job_id, job_graph.name)
            try:
                self._run(job_graph, journal, None, order)
            except Exception:
                await journal.close()
                await self._keeper.drop(job_id)
                raise
        finally:
            self._submissions.pop(job_id).set()
        reach("job.accepted")
        return SubmitReply(job_id, is_new=True)

    def _run(self, job_graph: JobGraph, journal: Journal, taken: TakenJob | None, order: int) -> None:
        job_id = job_graph.job_id
        job_master = self._job_master_factory(job_graph, journal, taken, order)
        running = self._running[job_id] = _RunningJob(job_master)
        self._rpc.start(job_master)
        job_master.start()
        self.spawn(self._await_end(job_id, running), f"end of job {job_id}")

    async def _await_end(self, job_id: JobId, running: _RunningJob) -> None:
        job_master = running.job_master
        outcome = await asyncio.shield(job_master.outcome)
        ended = EndedJob(job_master.overview, outcome, job_master.details)
        self._keep_ended(ended)
        CLUSTER_EVENTS.job_ended(outcome.status, outcome.runtime_ms / 1000)
        if outcome.status != "SUSPENDED":  # the next leader goes on with a suspended job
            reach("job.ended")
            if self._keeper.has_remains:
                has_tried = asyncio.Event()
                self.spawn(self._keeper.forget(ended, has_tried=has_tried), f"remains of {job_id}")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(has_tried.wait(), _REMAINS_S)
        if not running.outcome.done():
            running.outcome.set_result(outcome)
        self._rpc.stop(job_master)
        await job_master.stop()
        del self._running[job_id]  # until here ``stop`` sees to it, if it comes in between
        job_master.take_apart()

    def _keep_ended(self, ended: EndedJob) -> None:
        self._ended.add(ended)
        if ended.outcome.status != "SUSPENDED":
            self._on_ended(ended.overview)

    async def cancel_job(self, request: CancelJob) -> Acknowledge:
        """Begin to cancel a job, under any leader; one that has ended stays as it is."""
        job_id = request.job_id
        if await self._ended_job(job_id) is not None:
            return ACKNOWLEDGE
        if job_id in self._unread:
            self._cancelled_unread.add(job_id)
            try:
                self._end_unread(await self._keeper.end_unread(job_id))
            except NoHandleError:
                if job_id in self._unread:
                    raise
            finally:
                self._cancelled_unread.discard(job_id)
        else:
            # One that is being stored is not there yet: it would begin although it was cancelled.
            while (submission := self._submissions.get(job_id)) is not None:
                await submission.wait()
            await self._keeper.cancel(job_id)
            await self._cancel(job_id)
        return ACKNOWLEDGE

    async def cancel_all(self, timeout_s: float) -> None:
        """Cancel all jobs and wait for their ends, and until nothing is left of them, for so long."""
        ends = [running.outcome for running in self._running.values()]
        if ends:
            _log.info("cancelling %d jobs that would end with this process", len(ends))
        try:
            async with asyncio.timeout(timeout_s):
                cancelling = [self._cancel(job_id) for job_id in tuple(self._running)]
                for failed in await asyncio.gather(*cancelling, return_exceptions=True):
                    if isinstance(failed, Exception):
                        _log.warning("a job cannot be cancelled: %s", failed)
                if ends:
                    await asyncio.wait(ends)
        except TimeoutError:
            left = ", ".join(map(str, self._running))
            _log.warning("jobs %s are not cancelled after %g s, and what they staged may stay", left, timeout_s)

    async def _cancel(self, job_id: JobId) -> None:
        if job_id in self._running:
            await self._gateway(job_id).ask(CancelJob(job_id))

    async def request_job_status(self, request: RequestJobStatus) -> JobOverview:
        """Return a job's state."""
        ended = await self._ended_job(request.job_id)
        if ended is None and request.job_id in self._unread:
            return _unread_overview(request.job_id)
        if ended is not None:
            return ended.overview
        return await self._with_waiting(request.job_id, await self._gateway(request.job_id).ask(request))

    async def request_job_progress(self, request: RequestJobProgress) -> JobProgress:
        """Return a job's live numbers; of an ended job the last ones."""
        ended = await self._ended_job(request.job_id)
        if ended is None:
            return await self._with_waiting(request.job_id, await self._gateway(request.job_id).ask(request))
        outcome = ended.outcome
        vertices = tuple(
            VertexProgress(
                vertex.name,
                len(vertex.subtasks),
                add_counters(subtask.counters for subtask in vertex.subtasks),
                {},
            )
            for vertex in outcome.vertices
        )
        return JobProgress(
            outcome.job_id, outcome.name, outcome.status, outcome.runtime_ms, vertices, outcome.decisions
        )

    async def request_job_details(self, request: RequestJobDetails) -> JobDetails:
        """Return everything about a job; of an ended job the last."""
        ended = await self._ended_job(request.job_id)
        if ended is not None:
            return ended.details
        return await self._with_waiting(request.job_id, await self._gateway(request.job_id).ask(request))

    async def request_job_exceptions(self, request: RequestJobExceptions) -> JobExceptions:
        """Return the failures of a job so far."""
        ended = await self._ended_job(request.job_id)
        if ended is None:
            return await self._gateway(request.job_id).ask(request)
        return JobExceptions(ended.details.failures)

    async def request_job_outcome(self, request: RequestJobOutcome) -> JobOutcome:
        """Return the outcome of a job, once it has ended and is cleaned up."""
        running = self._running.get(request.job_id)
        if running is not None:
            return await asyncio.shield(running.outcome)
        ended = await self._ended_job(request.job_id)
        return ended.outcome if ended is not None else await self._gateway(request.job_id).ask(request, None)

    async def list_jobs(self, request: ListJobs) -> JobList:
        """Return all jobs, those that run last."""
        waiting = await self._waiting(None)
        running = [
            msgspec.structs.replace(job.job_master.overview, waiting=waiting.get(job_id))
            for job_id, job in self._running.items()
            if self._ended.get(job_id) is None
        ]
        return JobList((*self._ended.overviews, *map(_unread_overview, self._unread), *running))

    async def _with_waiting(self, job_id: JobId, answer: T) -> T:
        """Return a JobMaster's answer with the job's place in the queue for slots."""
        waiting = await self._waiting(job_id)
        return msgspec.structs.replace(answer, waiting=waiting[job_id]) if job_id in waiting else answer

    async def _waiting(self, job_id: JobId | None) -> dict[JobId, WaitingJob]:
        resource_manager = self._rpc.connect(self._rpc.address_of(RESOURCE_MANAGER_ADDRESS), self._epoch)
        try:
            return (await resource_manager.ask(RequestWaitingJobs(job_id))).jobs
        except EngineError as error:
            _log.debug("who waits for slots is not known: %s", error)
            return {}

    async def _ended_job(self, job_id: JobId) -> EndedJob | None:
        """Return the job if it has ended; raises JobNotFoundError when it is unknown."""
        ended = await self._ended.find(job_id)
        if ended is None and self._ended.is_unread(job_id):
            raise ResourceError(f"job {job_id} has ended, and its file in the history cannot be read at present")
        if ended is None and not self.is_known_job(job_id):
            if not self._ended.is_listed:
                raise ResourceError(
                    f"whether there was a job {job_id} is not known: ended jobs cannot be listed at present"
                )
            raise JobNotFoundError(f"there is no job {job_id}")
        return ended

    def _gateway(self, job_id: JobId) -> Gateway:
        running = self._running.get(job_id)
        if running is None:
            raise ResourceError(f"job {job_id} {NOT_RECOVERED}: {self._unread.get(job_id, 'it is being stored')}")
        return self._rpc.connect(running.job_master.address, self._epoch)

    async def stop(self) -> None:
        """Stop all JobMasters, then this endpoint; every one, the first error is raised."""
        await close_all_async(
            [
                *(partial(self._stop_job_master, running) for running in self._running.values()),
                *(taken.journal.close for taken in self._recovered),
                super().stop,
            ]
        )

    async def _stop_job_master(self, running: _RunningJob) -> None:
        self._rpc.stop(running.job_master)
        await running.job_master.stop()
        if not running.outcome.done():
            running.outcome.set_result(running.job_master.outcome.result())


def _unread_overview(job_id: JobId) -> JobOverview:
    return JobOverview(job_id, "(not recovered yet)", "RECONCILING", 0, -1)
