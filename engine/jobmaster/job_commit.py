"""The outputs of one job: prepared before it starts, decided and published at its end, or aborted.

    prepare() ─► staging of each sink               PlanError when an output exists
    adopt(staging)                                  the same of a job that another leader prepared
    commit(staged files)                            decide, publish, staging is gone
    publish_again(decision)                         what another leader decided
    record(end)                                     how the job ended, once and for all: it never runs again
    abort()                                         staging is gone; idempotent; only after the end is recorded

Blocking: runs in the JobMaster's executor. The storage refuses a former leader, so a
stale leader repeats at most what is in force: it publishes what was decided, and removes no staging before it has
recorded an end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from engine.commit.decision import Decision
from engine.commit.publish import publish
from engine.commit.result_record import JobResultRecord
from engine.commit.targets import target_named
from engine.errors import FencedError, JobExecutionError, PlanError, ResourceError
from engine.fault_points import reach
from engine.formats.output_check import check_outputs, sinks_of, staging_of, target_of
from engine.formats.registry import sink_format_of
from engine.gateways.job_details import JobDetails
from engine.gateways.messages import JobOutcome, JobOverview
from engine.graph.deployment import PublishedOutput, StagedFile, Staging
from engine.graph.job_graph import JobGraph
from engine.graph.operator_descriptor import SinkOperator
from engine.ids import JobId


class JobEnd(msgspec.Struct, frozen=True):
    """The end of a job: its record, and details kept for users."""

    record: JobResultRecord
    overview: JobOverview
    outcome: JobOutcome
    details: JobDetails


class StorageUnavailableError(ResourceError):
    """The storage of decisions and results does not answer for now."""


class JobStorage(Protocol):
    """Storage for the decision and the end of one job, written under the epoch of one leader.

    Blocking. What has been kept is never changed. FencedError: another leader is in force, nothing was changed.
    StorageUnavailableError: no answer, it may have been kept; the JobMaster asks again while it leads. OSError: it
    could not be kept.
    """

    @property
    def cluster(self) -> str:
        """The cluster whose next leader resumes the job; "": there is none."""
        ...

    @property
    def takes_time(self) -> bool:
        """Whether its calls are for threads that may wait."""
        ...

    def is_over(self, job_id: JobId) -> bool:
        """Whether no leader resumes another job of this cluster."""
        ...

    def ended(self) -> JobResultRecord | None:
        """Return the record of the job's end, or None."""
        ...

    def decide(self, decision: Decision) -> Decision:
        """Keep a decision unless there is one; return the one in force."""
        ...

    def record(self, end: JobEnd) -> None:
        """Keep how the job ended unless that is known."""
        ...


class JobCommit:
    """Staging, decision and publication of a job's outputs.

    ``staging`` is what another leader of the job has prepared, to be removed when it is not adopted.
    """

    def __init__(
        self,
        job_graph: JobGraph,
        epoch: int,
        is_leading: Callable[[], bool],
        storage: JobStorage,
        staging: Mapping[int, Staging] | None = None,
    ) -> None:
        self._job_id = job_graph.job_id
        self._sinks = sinks_of(job_graph)
        self._parallelism: dict[int, int] = {}
        self.revise(job_graph)
        self._epoch = epoch
        self._is_leading = is_leading
        self._storage = storage
        self._staging = dict(staging or {})
        #: lock: a job that is cancelled while it is prepared removes its staging
        self._turn = threading.RLock()
        # Resolved once: the working folder may change while the job runs.
        self._by_name = {sink.sink_index: staging_of(sink.spec, self._job_id) for sink in self._sinks}
        #: True if ``record`` takes no time
        self.records_at_once = not storage.takes_time
        #: True if outputs are prepared and published without waiting for anything
        self.is_at_once = self.records_at_once and all(
            target_named(each.target).is_at_once for each in self._by_name.values()
        )

    def revise(self, job_graph: JobGraph) -> None:
        """Take note of how many subtasks write each output."""
        for vertex in job_graph.vertices:
            for step in vertex.chain:
                if isinstance(step.operator, SinkOperator):
                    self._parallelism[step.operator.sink_index] = vertex.parallelism

    def prepare(self) -> dict[int, Staging]:
        """Check the outputs and make room for them; return the place for each sink index.

        Raises: PlanError when an output exists, or when the job has ended before.
        """
        ended = self._storage.ended()
        if ended is not None:
            raise PlanError(f"job {self._job_id} has run before: it is {ended.status}")
        check_outputs(sink.spec for sink in self._sinks)
        with self._turn:
            self._check_leading()
            for sink in self._sinks:
                self._staging[sink.sink_index] = self._prepare_sink(sink)
        return dict(self._staging)

    def _prepare_sink(self, sink: SinkOperator) -> Staging:
        target, staging = target_of(sink.spec), self._by_name[sink.sink_index]
        target.sweep(staging.output, self._storage.cluster, self._storage.is_over)
        try:
            target.prepare(sink.spec, staging, self._job_id, self._storage.cluster)
        except OSError as error:
            raise JobExecutionError(f"output {sink.spec.path} cannot be staged: {error}") from error
        return staging

    def adopt(self, staging: Mapping[int, Staging]) -> None:
        """Answer for the staging that another leader of this job has prepared."""
        with self._turn:
            self._check_leading()
            for sink_index, place in staging.items():
                target_named(place.target).adopt(place, self._job_id, self._storage.cluster)
                self._staging[sink_index] = place

    def commit(self, staged: Iterable[StagedFile]) -> tuple[PublishedOutput, ...]:
        """Decide and publish; raises FencedError when this leader is one no more."""
        if not self._sinks:
            return ()
        files = list(staged)
        outputs = []
        for sink in self._sinks:
            own = [file for file in files if file.sink_index == sink.sink_index]
            ended = {file.subtask_index for file in own}
            if len(ended) != self._parallelism[sink.sink_index]:
                raise JobExecutionError(
                    f"output {sink.spec.path}: staged files of {len(ended)} of {self._parallelism[sink.sink_index]} "
                    "subtasks"
                )
            staging, entry = self._staging[sink.sink_index], sink_format_of(sink.spec)
            output = target_named(staging.target).decided(
                sink.spec, sink.sink_index, staging, own, self._job_id, is_passing=entry.is_passing
            )
            outputs.append(entry.completed(output, sink.spec, own))
        reach("sink.deciding")
        self._check_leading()
        return self.publish_again(self._storage.decide(Decision(self._job_id, self._epoch, tuple(outputs))))

    def publish_again(self, decision: Decision) -> tuple[PublishedOutput, ...]:
        """Publish what was decided, by this leader or one before it."""
        reach("sink.decided")
        self._check_leading()
        published = publish(decision, is_durable=bool(self._storage.cluster))
        reach("sink.published")
        return published

    def record(self, end: JobEnd) -> None:
        """Record how the job ended; FencedError when this leader is one no more."""
        self._check_leading()
        self._storage.record(end)
        reach("job.recorded")

    def abort(self) -> None:
        """Remove staging, also what is left of a job that was never prepared here."""
        with self._turn:
            for sink_index, by_name in self._by_name.items():
                staging = self._staging.get(sink_index, by_name)
                target_named(staging.target).abort(staging, self._job_id)

    def _check_leading(self) -> None:
        if not self._is_leading():
            raise FencedError(self._epoch + 1, self._epoch)
