"""JobReport: what a job reports to clients: state, live numbers, details, failures, and at its end how it ended.

It reads the ``JobState`` and changes nothing in it.

Held by: tests/dispatcher/test_cluster_components.py
"""

from __future__ import annotations

import msgspec

from engine.clock import Clock
from engine.commit.result_record import JobResultRecord
from engine.gateways.job_details import JobDetails, JobExceptions, JobFailure
from engine.gateways.messages import JobOutcome, JobOverview, JobProgress
from engine.graph.deployment import FailureInfo, VertexResult, store_totals
from engine.graph.job_graph import JobGraph
from engine.jobmaster.job_commit import JobEnd
from engine.jobmaster.job_details import vertex_details
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_status import JobStatus
from engine.jobmaster.job_summary import vertex_progress, vertex_results
from engine.jobmaster.memory_history import MemoryHistory
from engine.jobmaster.status_history import StatusHistory
from engine.storage.store_counters import StoreTraffic


class JobReport:
    """Status, times and numbers of one job."""

    def __init__(
        self, facts: JobFacts, history: StatusHistory, memory: MemoryHistory, clock: Clock, traffic: StoreTraffic
    ) -> None:
        self._facts = facts
        self._memory = memory
        self._traffic = traffic
        self._history = history
        self._clock = clock
        self._start_s = clock.monotonic_s() - max(0, clock.wall_ms() - facts.start_ms) / 1000
        self._end_s: float | None = None
        self._begun_ms = -1
        #: end of the job, as reported to clients
        self._end: JobEnd | None = None

    @property
    def _job(self) -> JobGraph:
        return self._facts.graph.job_graph

    @property
    def _runtime_ms(self) -> int:
        end_s = self._clock.monotonic_s() if self._end_s is None else self._end_s
        return int((end_s - self._start_s) * 1000)

    @property
    def _end_ms(self) -> int:
        return self._facts.start_ms + self._runtime_ms if self._history.status.is_terminal else -1

    def _first_begun_ms(self) -> int:
        """Return the time of the first subtask's begin, -1 before; once known it is not sought among many again."""
        if self._begun_ms < 0:
            begun = []
            for vertex in self._facts.graph:
                times = vertex.current.timestamps_ms
                # A very fast one is FINISHED before it was known to be RUNNING.
                time_ms = times.get("RUNNING", times.get("FINISHED", -1))
                if time_ms >= 0:
                    begun.append(time_ms)
            self._begun_ms = min(begun, default=-1)
        return self._begun_ms

    def stop_counting(self) -> None:
        """Take note that the job ends now; again is no news."""
        if self._end_s is None:
            self._end_s = self._clock.monotonic_s()

    def job_end(self, status: JobStatus, failure: FailureInfo | None, epoch: int) -> JobEnd:
        """Return the end of the job as of now."""
        self.stop_counting()
        text = "" if failure is None else f"{failure.type_name}: {failure.message}"
        end_ms = self._facts.start_ms + self._runtime_ms
        times = {**self._history.timestamps_ms, str(status): self._clock.wall_ms()}
        self._end = JobEnd(
            JobResultRecord(self._job.job_id, self._job.name, str(status), epoch, self._runtime_ms, text),
            msgspec.structs.replace(self.overview, status=str(status), end_ms=end_ms),
            self.outcome(status, failure),
            msgspec.structs.replace(self.details, status=str(status), end_ms=end_ms, timestamps_ms=times),
        )
        return self._end

    def outcome(self, status: JobStatus, failure: FailureInfo | None) -> JobOutcome:
        """Return the outcome of the job for clients."""
        job = self._job
        return JobOutcome(
            job.job_id,
            job.name,
            str(status),
            self._runtime_ms,
            self._results(),
            failure,
            self._facts.planner.decisions,
            self._facts.published,
            self._stores,
        )

    def _results(self) -> tuple[VertexResult, ...]:
        """Return the counters of all subtasks, which are not made twice for the end of the job."""
        if self._end is not None and self._end.outcome.status == str(self._history.status):
            return self._end.outcome.vertices
        return vertex_results(self._facts.graph)

    @property
    def _stores(self) -> dict[str, tuple[int, int, int]]:
        return store_totals([self._job.stores, self._traffic.by_store()])

    @property
    def overview(self) -> JobOverview:
        """The job in a list."""
        tasks: dict[str, int] = {}
        for vertex in self._facts.graph:
            name = str(vertex.current.state)
            tasks[name] = tasks.get(name, 0) + 1
        status = str(self._history.status)
        job, start_ms, begun_ms = self._job, self._facts.start_ms, self._first_begun_ms()
        return JobOverview(
            job.job_id, job.name, status, start_ms, self._end_ms, tasks, user=job.user, begun_ms=begun_ms
        )

    @property
    def progress(self) -> JobProgress:
        """Live numbers."""
        return JobProgress(
            self._job.job_id,
            self._job.name,
            str(self._history.status),
            self._runtime_ms,
            vertex_progress(self._facts.graph),
            self._facts.planner.decisions,
            restarts=tuple(self._history.restarts),
        )

    @property
    def details(self) -> JobDetails:
        """Details of the job: vertices, attempts, edges, times."""
        if self._end is not None and self._end.record.status == str(self._history.status):
            return self._end.details
        job = self._job
        return JobDetails(
            job.job_id,
            job.name,
            str(self._history.status),
            self._facts.start_ms,
            self._end_ms,
            dict(self._history.timestamps_ms),
            vertex_details(self._facts.graph),
            self._facts.planner.decisions,
            self.exceptions.failures,
            job.configuration,
            stores=self._stores,
            planned=job.planned,
            memory=self._memory.points(self._facts.clock.wall_ms()),
        )

    @property
    def exceptions(self) -> JobExceptions:
        """Failures so far."""
        failures = self._facts.failures
        latest = tuple(JobFailure(past.time_ms, past.failure) for past in failures.latest)
        return JobExceptions(latest, failures.is_truncated)
