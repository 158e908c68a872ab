"""JobEnding: how a job ends, and what it tells others on the way. A part of the JobMaster.

    all FINISHED ─► journal durable ─► decide ─► publish ──────────► record ─► give back ─► FINISHED
    FAILING, CANCELLING, all tasks ended ──────────────────────────► record ─► give back ─► staging goes ─► FAILED ...

Whoever leads next may go on from any of these steps: a decision is published again, a recorded end only cleaned up
after. The outcome is known to others when slots, partitions, workers and staging are given back.

A leader that turns out to be none any more leaves the job as it is, to be stopped and SUSPENDED here.

Held by: tests/jobmaster/test_end_of_job.py
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import TypeVar

from engine.errors import EngineError, FencedError
from engine.fault_points import reach
from engine.gateways.failure_info import failure_info
from engine.gateways.messages import ReleaseJob, WithdrawSlotRequests
from engine.graph.deployment import FailureInfo
from engine.jobmaster.job_commit import JobCommit, StorageUnavailableError
from engine.jobmaster.job_event import FailingBegun, FailureNoted
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_journal import Journal
from engine.jobmaster.job_report import JobReport
from engine.jobmaster.job_status import JobStatus
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.fencing import LeaderFence
from engine.rpc.gateway import RpcService
from engine.rpc.request import Acknowledge, Request

_log = logging.getLogger(__name__)

T = TypeVar("T")

#: seconds in which a TaskExecutor ends all tasks of a job and gives everything back
_RELEASE_TIMEOUT_S = 60.0
#: between two questions to a storage that does not answer
_STORAGE_PAUSE_S = 1.0


class JobEnding(JobReport, RpcEndpoint):
    """The end of one job, whose JobMaster this is a part of."""

    def __init__(
        self,
        state: JobFacts,
        rpc: RpcService,
        epoch: int,
        resource_manager_address: str,
        commit: JobCommit,
        journal: Journal,
        blocking_work: Executor,
        on_fatal: Callable[[BaseException], None] | None,
    ) -> None:
        JobReport.__init__(self, state)
        RpcEndpoint.__init__(self, f"jobmaster-{state.graph.job_graph.job_id}", LeaderFence(epoch), on_fatal)
        self._rpc = rpc
        self._epoch = epoch
        self._resource_manager_address = resource_manager_address
        self._commit = commit
        self._journal = journal
        self._blocking_work = blocking_work
        self._is_ending = False

    def _holders(self) -> Iterable[str]:
        """Return addresses of TaskExecutors that may have something of the job."""
        raise NotImplementedError

    # ---- the end ----

    def _note_failure(self, failure: FailureInfo) -> None:
        self._failures.add(failure)
        self._journal.append(FailureNoted(failure, self._clock.wall_ms()))

    def _enter_failing(self) -> None:
        self._enter(JobStatus.FAILING)
        self._journal.append(FailingBegun(self._clock.wall_ms()))

    async def _finish(self) -> None:
        staged = [file for vertex in self._graph for file in vertex.current.staged_files]
        # What the decision rests on is known to the next leader, too: it repeats no task to count its rows.
        await self._journal.flush()
        await self._publish(lambda: self._commit.commit(staged))

    async def _publish(self, work: Callable[[], None]) -> None:
        """End the job as FINISHED when ``work`` has published its outputs, else as FAILED."""
        try:
            await self._ask_storage(work)
        except FencedError as error:
            self._leave(error)
            return
        except Exception as error:  # whatever it is, it is why the job fails
            self._note_failure(failure_info(error))
            self._enter_failing()
            await self._end_unfinished()
            return
        if await self._record(JobStatus.FINISHED, None):
            await self._release()
            reach("job.released")
            self._end(JobStatus.FINISHED, None)

    async def _end_unfinished(self) -> None:
        is_cancelled = self._status is JobStatus.CANCELLING
        status = JobStatus.CANCELED if is_cancelled else JobStatus.FAILED
        failure = None if is_cancelled else self._failures.root
        # Staging goes when nobody else can go on with the job: a stale leader would take it from its successor.
        if not await self._record(status, failure):
            return
        await self._release()
        reach("job.released")
        try:
            await asyncio.get_running_loop().run_in_executor(self._blocking_work, self._commit.abort)
        except OSError as error:
            _log.warning("staging of job %s could not be removed: %s", self.job_graph.job_id, error)
        self._end(status, failure)

    async def _record(self, status: JobStatus, failure: FailureInfo | None) -> bool:
        """Record how the job ended; return whether this leader may end it.

        What was published stays published when that is not possible.
        """
        end = self._job_end(status, failure, self._epoch)
        try:
            await self._ask_storage(lambda: self._commit.record(end))
        except FencedError as error:
            self._leave(error)
            return False
        except (OSError, EngineError) as error:
            _log.warning("the result of job %s could not be recorded: %s", self.job_graph.job_id, error)
        return True

    async def _ask_storage(self, work: Callable[[], T]) -> T:
        """Do what may be done twice, again and again while the storage does not answer."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                return await loop.run_in_executor(self._blocking_work, work)
            except StorageUnavailableError as error:
                _log.warning("job %s waits for its storage: %s", self.job_graph.job_id, error)
                await asyncio.sleep(_STORAGE_PAUSE_S)

    def _leave(self, error: FencedError) -> None:
        """Do no more: another leader goes on with the job, and this one is about to be stopped."""
        self._is_ending = True
        _log.warning("job %s is left to another leader: %s", self.job_graph.job_id, error)

    async def _release(self) -> None:
        """Give back everything that the job holds on TaskExecutors and at the ResourceManager."""
        job_id = self.job_graph.job_id
        calls = [self._ask_quietly(self._resource_manager_address, WithdrawSlotRequests(job_id))]
        calls += [self._ask_quietly(address, ReleaseJob(job_id)) for address in self._holders()]
        await asyncio.gather(*calls)

    async def stop(self) -> None:
        """Stop answering; a job that has not ended is SUSPENDED here."""
        await super().stop()
        await self._journal.close()
        if not self._status.is_terminal:
            self._end(JobStatus.SUSPENDED, None)

    # ---- what others are told ----

    def _tell_resource_manager(self, request: Request[Acknowledge]) -> None:
        self._tell(self._resource_manager_address, request)

    def _tell(self, address: str, request: Request[Acknowledge]) -> None:
        self.spawn(self._ask_quietly(address, request), type(request).__name__)

    async def _ask_quietly(self, address: str, request: Request[Acknowledge]) -> None:
        """Send what need not arrive: a component that is gone holds nothing any more."""
        try:
            await self._rpc.connect(address, self._epoch).ask(request, _RELEASE_TIMEOUT_S)
        except EngineError as error:
            _log.warning("%s to %s: %s", type(request).__name__, address, error)
