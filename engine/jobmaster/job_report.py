"""JobReport: what a job tells those who ask: state, live numbers, details, failures. A part of the JobMaster.

It holds the job's status, which changes by its table only, and the times at which it did.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque

import msgspec

from engine.commit.result_record import JobResultRecord
from engine.gateways.job_details import JobDetails, JobExceptions, JobFailure, RequestJobDetails, RequestJobExceptions
from engine.gateways.messages import (
    JobOutcome,
    JobOverview,
    JobProgress,
    JobRestart,
    RequestJobOutcome,
    RequestJobProgress,
    RequestJobStatus,
)
from engine.graph.deployment import FailureInfo
from engine.jobmaster.job_commit import JobEnd
from engine.jobmaster.job_details import vertex_details
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_status import JobStatus, check_job_transition
from engine.jobmaster.job_summary import vertex_progress, vertex_results

_log = logging.getLogger(__name__)

#: that a client which asks now and then misses none
_RESTARTS_KEPT = 32
_CAUSE_CHARACTERS_MAX = 500


class JobReport:
    """Status, times and numbers of one job; ``outcome`` is set at its end."""

    def __init__(self, state: JobFacts) -> None:
        self.job_graph = state.graph.job_graph
        self._clock = clock = state.clock
        self._graph = state.graph
        self._planner = state.planner
        self._failures = state.failures
        self._restarts: deque[JobRestart] = deque(maxlen=_RESTARTS_KEPT)
        self._status = JobStatus.INITIALIZING
        self._start_ms = state.start_ms
        self._start_s = clock.monotonic_s() - max(0, clock.wall_ms() - state.start_ms) / 1000
        self._end_s: float | None = None
        self._timestamps_ms = {JobStatus.INITIALIZING.value: self._start_ms}
        self.outcome: asyncio.Future[JobOutcome] = asyncio.get_running_loop().create_future()

    def _enter(self, status: JobStatus) -> None:
        check_job_transition(self._status, status)
        _log.info("job %s (%s): %s -> %s", self.job_graph.job_id, self.job_graph.name, self._status, status)
        self._status = status
        self._timestamps_ms[status.value] = self._clock.wall_ms()

    def _note_restart(self, number: int, pause_s: float) -> None:
        """Have clients hear of an attempt that failed, and why."""
        root = self._failures.root
        cause = f"{root.type_name}: {root.message}"
        if len(cause) > _CAUSE_CHARACTERS_MAX:
            cause = f"{cause[:_CAUSE_CHARACTERS_MAX]}..."
        self._restarts.append(JobRestart(number, cause, round(pause_s * 1000)))

    @property
    def _runtime_ms(self) -> int:
        end_s = self._clock.monotonic_s() if self._end_s is None else self._end_s
        return int((end_s - self._start_s) * 1000)

    def _job_end(self, status: JobStatus, failure: FailureInfo | None, epoch: int) -> JobEnd:
        """Return how the job ends, at this moment."""
        if self._end_s is None:
            self._end_s = self._clock.monotonic_s()
        job, text = self.job_graph, "" if failure is None else f"{failure.type_name}: {failure.message}"
        end_ms = self._start_ms + self._runtime_ms
        times = {**self._timestamps_ms, status.value: self._clock.wall_ms()}
        return JobEnd(
            JobResultRecord(job.job_id, job.name, status.value, epoch, self._runtime_ms, text),
            msgspec.structs.replace(self.overview, status=status.value, end_ms=end_ms),
            self._outcome(status, failure),
            msgspec.structs.replace(self.details, status=status.value, end_ms=end_ms, timestamps_ms=times),
        )

    def _end(self, status: JobStatus, failure: FailureInfo | None) -> None:
        """Enter the last status and tell who waits for it."""
        self._enter(status)
        if self._end_s is None:
            self._end_s = self._clock.monotonic_s()
        self.outcome.set_result(self._outcome(status, failure))

    def _outcome(self, status: JobStatus, failure: FailureInfo | None) -> JobOutcome:
        return JobOutcome(
            self.job_graph.job_id,
            self.job_graph.name,
            status.value,
            self._runtime_ms,
            vertex_results(self._graph),
            failure,
            self._planner.decisions,
        )

    @property
    def overview(self) -> JobOverview:
        """The job in a list."""
        tasks = dict(Counter(vertex.current.state.value for vertex in self._graph))
        job = self.job_graph
        return JobOverview(job.job_id, job.name, self._status.value, self._start_ms, self._end_ms, tasks)

    @property
    def details(self) -> JobDetails:
        """Everything about the job."""
        return JobDetails(
            self.job_graph.job_id,
            self.job_graph.name,
            self._status.value,
            self._start_ms,
            self._end_ms,
            dict(self._timestamps_ms),
            vertex_details(self._graph),
            self._planner.decisions,
            self.exceptions.failures,
            self.job_graph.configuration,
        )

    @property
    def exceptions(self) -> JobExceptions:
        """What went wrong so far."""
        latest = reversed(self._failures.latest)
        return JobExceptions(
            tuple(JobFailure(past.time_ms, past.failure) for past in latest), self._failures.is_truncated
        )

    @property
    def _end_ms(self) -> int:
        return self._start_ms + self._runtime_ms if self._status.is_terminal else -1

    # ---- messages ----

    async def request_job_status(self, request: RequestJobStatus) -> JobOverview:
        """Return the job's state."""
        return self.overview

    async def request_job_progress(self, request: RequestJobProgress) -> JobProgress:
        """Return live numbers."""
        return JobProgress(
            self.job_graph.job_id,
            self.job_graph.name,
            self._status.value,
            self._runtime_ms,
            vertex_progress(self._graph),
            self._planner.decisions,
            restarts=tuple(self._restarts),
        )

    async def request_job_details(self, request: RequestJobDetails) -> JobDetails:
        """Return everything about the job."""
        return self.details

    async def request_job_exceptions(self, request: RequestJobExceptions) -> JobExceptions:
        """Return what went wrong so far."""
        return self.exceptions

    async def request_job_outcome(self, request: RequestJobOutcome) -> JobOutcome:
        """Return how the job ended, once it has."""
        return await asyncio.shield(self.outcome)
