"""The outputs of one job: prepared before it starts, decided and published at its end, or aborted.

    prepare() ─► staging folder of each sink        PlanError when an output exists
    commit(staged files)                            decide, publish, staging is gone
    abort()                                         staging is gone; idempotent

Blocking: runs in the JobMaster's executor, one call at a time. The decision lies in ``decision_folder`` under the
job's id or, without one, in the first sink's staging folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from engine.commit.decision import DECISION_FILE, Decision, DecisionStore, decided_output
from engine.commit.output_check import check_outputs, resolve_target, sinks_of
from engine.commit.publish import publish
from engine.commit.staging import create_staging, remove_staging, sweep_stale
from engine.errors import FencedError, JobExecutionError
from engine.graph.deployment import StagedFile
from engine.graph.job_graph import JobGraph


class JobCommit:
    """Staging, decision and publication of a job's outputs."""

    def __init__(
        self, job_graph: JobGraph, epoch: int, is_leading: Callable[[], bool], decision_folder: Path | None = None
    ) -> None:
        self._job_id = job_graph.job_id
        self._sinks = sinks_of(job_graph)
        self._parallelism = {
            sink.sink_index: vertex.parallelism
            for vertex in job_graph.vertices
            for sink in self._sinks
            if any(step.operator == sink for step in vertex.chain)
        }
        self._epoch = epoch
        self._is_leading = is_leading
        self._decision_folder = decision_folder
        self._staging: dict[int, Path] = {}
        # Resolved once: the working folder may change while the job runs.
        self._targets = {sink.sink_index: resolve_target(sink.spec.path) for sink in self._sinks}

    def prepare(self) -> dict[int, str]:
        """Check the outputs and create staging; return its path for each sink index."""
        check_outputs(sink.spec for sink in self._sinks)
        for sink in self._sinks:
            target = self._targets[sink.sink_index]
            sweep_stale(target)
            try:
                self._staging[sink.sink_index] = create_staging(target, self._job_id)
            except OSError as error:
                raise JobExecutionError(f"output {sink.spec.path} cannot be staged: {error}") from error
        return {sink_index: str(path) for sink_index, path in self._staging.items()}

    def commit(self, staged: Iterable[StagedFile]) -> None:
        """Decide and publish; raises FencedError when this leader is one no more."""
        if not self._sinks:
            return
        files = list(staged)
        outputs = []
        for sink in self._sinks:
            own = [file for file in files if file.sink_index == sink.sink_index]
            if len(own) != self._parallelism[sink.sink_index]:
                raise JobExecutionError(
                    f"output {sink.spec.path}: {len(own)} staged files of {self._parallelism[sink.sink_index]} subtasks"
                )
            target = self._targets[sink.sink_index]
            staging = self._staging[sink.sink_index]
            outputs.append(decided_output(sink.sink_index, target, staging, sink.spec.overwrite, own))
        if not self._is_leading():
            raise FencedError(self._epoch + 1, self._epoch)
        publish(self._store().decide(Decision(self._job_id, self._epoch, tuple(outputs))))

    def abort(self) -> None:
        """Remove staging."""
        for path in self._staging.values():
            remove_staging(path)

    def _store(self) -> DecisionStore:
        if self._decision_folder is not None:
            return DecisionStore(self._decision_folder)
        return DecisionStore(self._staging[self._sinks[0].sink_index], DECISION_FILE)
