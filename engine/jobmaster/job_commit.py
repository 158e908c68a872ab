"""The outputs of one job: prepared before it starts, decided and published at its end, or aborted.

    prepare() ─► staging folder of each sink        PlanError when an output exists
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

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from engine.commit.decision import (
    Decision,
    decided_output,
)
from engine.commit.output_check import check_outputs, resolve_target, sinks_of
from engine.commit.publish import publish
from engine.commit.result_record import JobResultRecord
from engine.commit.staging import adopt_staging, create_staging, remove_staging, staging_path, sweep_stale
from engine.errors import FencedError, JobExecutionError, PlanError, ResourceError
from engine.fault_points import reach
from engine.formats.registry import sink_format_of
from engine.gateways.job_details import JobDetails
from engine.gateways.messages import JobOutcome, JobOverview
from engine.graph.deployment import StagedFile
from engine.graph.job_graph import JobGraph
from engine.graph.operator_descriptor import SinkOperator
from engine.ids import JobId
from engine.storage.file_systems import is_folder


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
        staging: Mapping[int, str] | None = None,
    ) -> None:
        self._job_id = job_graph.job_id
        self._sinks = sinks_of(job_graph)
        self._parallelism: dict[int, int] = {}
        self.revise(job_graph)
        self._epoch = epoch
        self._is_leading = is_leading
        self._storage = storage
        self._staging = {sink_index: Path(path) for sink_index, path in (staging or {}).items()}
        #: lock: a job that is cancelled while it is prepared removes its staging
        self._turn = threading.RLock()
        # Resolved once: the working folder may change while the job runs.
        self._targets = {sink.sink_index: resolve_target(sink.spec.path) for sink in self._sinks}

    def revise(self, job_graph: JobGraph) -> None:
        """Take note of how many subtasks write each output."""
        self._parallelism = {
            sink.sink_index: vertex.parallelism
            for vertex in job_graph.vertices
            for sink in self._sinks
            if any(step.operator == sink for step in vertex.chain)
        }

    def prepare(self) -> dict[int, str]:
        """Check the outputs and create staging; return its path for each sink index.

        Raises: PlanError when an output exists, or when the job has ended before.
        """
        ended = self._storage.ended()
        if ended is not None:
            raise PlanError(f"job {self._job_id} has run before: it is {ended.status}")
        check_outputs(sink.spec for sink in self._sinks)
        with self._turn:
            self._check_leading()
            for sink in self._sinks:
                self._staging[sink.sink_index] = self._create_staging(sink)
        return {sink_index: str(path) for sink_index, path in self._staging.items()}

    def _create_staging(self, sink: SinkOperator) -> Path:
        target = self._targets[sink.sink_index]
        sweep_stale(target, self._storage.cluster, self._storage.is_over)
        try:
            return create_staging(target, self._job_id, self._storage.cluster)
        except OSError as error:
            raise JobExecutionError(f"output {sink.spec.path} cannot be staged: {error}") from error

    def adopt(self, staging: Mapping[int, str]) -> None:
        """Answer for the staging that another leader of this job has prepared."""
        with self._turn:
            self._check_leading()
            for sink_index, path in staging.items():
                adopt_staging(Path(path), self._storage.cluster)
                self._staging[sink_index] = Path(path)

    def commit(self, staged: Iterable[StagedFile]) -> None:
        """Decide and publish; raises FencedError when this leader is one no more."""
        if not self._sinks:
            return
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
            target = self._targets[sink.sink_index]
            staging = self._staging[sink.sink_index]
            added_by = (sink.spec.mode, self._job_id) if sink.spec.mode else None
            entry = sink_format_of(sink.spec)
            output = decided_output(
                sink.sink_index, target, staging, sink.spec.overwrite, own, added_by, is_passing=entry.is_passing
            )
            outputs.append(entry.completed(output, sink.spec, own))
        reach("sink.deciding")
        self._check_leading()
        self.publish_again(self._storage.decide(Decision(self._job_id, self._epoch, tuple(outputs))))

    def publish_again(self, decision: Decision) -> None:
        """Publish what was decided, by this leader or one before it."""
        reach("sink.decided")
        self._check_leading()
        publish(decision, is_durable=bool(self._storage.cluster))
        reach("sink.published")

    @property
    def records_at_once(self) -> bool:
        """Whether ``record`` takes no time."""
        return not self._storage.takes_time

    def record(self, end: JobEnd) -> None:
        """Record how the job ended; FencedError when this leader is one no more."""
        self._check_leading()
        self._storage.record(end)
        reach("job.recorded")

    def abort(self) -> None:
        """Remove staging, also what is left of a job that was never prepared here."""
        with self._turn:
            for sink in self._sinks:
                by_name = staging_path(self._targets[sink.sink_index], self._job_id)
                staging = self._staging.get(sink.sink_index, by_name)
                if is_folder(os.fspath(staging)):
                    remove_staging(staging)

    def _check_leading(self) -> None:
        if not self._is_leading():
            raise FencedError(self._epoch + 1, self._epoch)
