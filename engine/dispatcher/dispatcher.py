"""Dispatcher: the endpoint that clients submit to.

    SubmitJob ─► JobMaster (one for each job, in this process) ─► its outcome ─► JobStore

Submission is idempotent by job id: a client that got no answer sends the same JobGraph again. Questions about a
running job go to its JobMaster, about an ended one to the store. When the Dispatcher stops, so do its JobMasters:
their jobs are SUSPENDED here, for the next leader to take up.

Source: Flink's Dispatcher.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from engine.dispatcher.job_archive import EndedJob
from engine.dispatcher.job_store import JobStore
from engine.errors import JobNotFoundError
from engine.fault_points import reach
from engine.gateways.dispatcher import DispatcherGateway
from engine.gateways.job_details import JobDetails, JobExceptions, RequestJobDetails, RequestJobExceptions
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
from engine.jobmaster.job_master import JobMaster
from engine.jobmaster.job_summary import add_counters
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.fencing import LeaderFence
from engine.rpc.gateway import Gateway, RpcService
from engine.rpc.request import ACKNOWLEDGE, Acknowledge

_log = logging.getLogger(__name__)

DISPATCHER_ADDRESS = "dispatcher"

#: makes the JobMaster of a job under the Dispatcher's epoch
JobMasterFactory = Callable[[JobGraph], JobMaster]


class Dispatcher(RpcEndpoint):
    """Jobs of the cluster, under one leader epoch."""

    protocol = DispatcherGateway

    def __init__(
        self,
        rpc: RpcService,
        epoch: int,
        job_master_factory: JobMasterFactory,
        on_fatal: Callable[[BaseException], None] | None = None,
        remove_blobs: Callable[[JobId], Awaitable[None]] | None = None,
        ended: JobStore | None = None,
    ) -> None:
        super().__init__(DISPATCHER_ADDRESS, LeaderFence(epoch), on_fatal)
        self._rpc = rpc
        self._epoch = epoch
        self._job_master_factory = job_master_factory
        self._remove_blobs = remove_blobs
        self._job_masters: dict[JobId, JobMaster] = {}
        self._ended = ended or JobStore()

    @property
    def running_job_ids(self) -> tuple[JobId, ...]:
        """Jobs that have a JobMaster."""
        return tuple(self._job_masters)

    async def submit_job(self, request: SubmitJob) -> SubmitReply:
        """Start a job, unless one of that id is known already."""
        job_id = request.job_graph.job_id
        if job_id in self._job_masters or self._ended.get(job_id) is not None:
            return SubmitReply(job_id, is_new=False)
        _log.info("job %s (%s) is submitted", job_id, request.job_graph.name)
        job_master = self._job_master_factory(request.job_graph)
        self._job_masters[job_id] = job_master
        self._rpc.start(job_master)
        job_master.start()
        reach("job.accepted")
        self.spawn(self._await_end(job_id, job_master), f"end of job {job_id}")
        return SubmitReply(job_id, is_new=True)

    async def _await_end(self, job_id: JobId, job_master: JobMaster) -> None:
        outcome = await asyncio.shield(job_master.outcome)
        self._ended.add(EndedJob(job_master.overview, outcome, job_master.details))
        del self._job_masters[job_id]
        self._rpc.stop(job_master)
        await job_master.stop()
        # The next leader goes on with a suspended job.
        if self._remove_blobs is not None and outcome.status != "SUSPENDED":
            await self._remove_blobs(job_id)

    async def cancel_job(self, request: CancelJob) -> Acknowledge:
        """Begin to cancel a job; one that has ended stays as it is."""
        if self._ended_job(request.job_id) is None:
            return await self._gateway(request.job_id).ask(request)
        return ACKNOWLEDGE

    async def request_job_status(self, request: RequestJobStatus) -> JobOverview:
        """Return a job's state."""
        ended = self._ended_job(request.job_id)
        return ended.overview if ended is not None else await self._gateway(request.job_id).ask(request)

    async def request_job_progress(self, request: RequestJobProgress) -> JobProgress:
        """Return a job's live numbers; of an ended job the last ones."""
        ended = self._ended_job(request.job_id)
        if ended is None:
            return await self._gateway(request.job_id).ask(request)
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
        ended = self._ended_job(request.job_id)
        return ended.details if ended is not None else await self._gateway(request.job_id).ask(request)

    async def request_job_exceptions(self, request: RequestJobExceptions) -> JobExceptions:
        """Return what went wrong so far in a job."""
        ended = self._ended_job(request.job_id)
        if ended is None:
            return await self._gateway(request.job_id).ask(request)
        return JobExceptions(ended.details.failures)

    async def request_job_outcome(self, request: RequestJobOutcome) -> JobOutcome:
        """Return how a job ended, once it has."""
        ended = self._ended_job(request.job_id)
        return ended.outcome if ended is not None else await self._gateway(request.job_id).ask(request, None)

    async def list_jobs(self, request: ListJobs) -> JobList:
        """Return all jobs, those that run last."""
        running = tuple(job_master.overview for job_master in self._job_masters.values())
        return JobList((*self._ended.overviews, *running))

    def _ended_job(self, job_id: JobId) -> EndedJob | None:
        """Return the job if it has ended; raises JobNotFoundError when nobody knows it."""
        ended = self._ended.get(job_id)
        if ended is None and job_id not in self._job_masters:
            raise JobNotFoundError(f"there is no job {job_id}")
        return ended

    def _gateway(self, job_id: JobId) -> Gateway:
        return self._rpc.connect(self._job_masters[job_id].address, self._epoch)

    async def stop(self) -> None:
        """Stop all JobMasters, then this endpoint."""
        for job_master in tuple(self._job_masters.values()):
            self._rpc.stop(job_master)
            await job_master.stop()
        await super().stop()
