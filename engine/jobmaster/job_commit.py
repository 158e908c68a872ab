"""The outputs of one job: prepared before it starts, decided and published at its end, or aborted.

    prepare() ─► staging folder of each sink        PlanError when an output exists
    commit(staged files)                            decide, publish, staging is gone
    abort()                                         staging is gone; idempotent
    record(status, ...)                             how the job ended, once and for all: it never runs again

Blocking: runs in the JobMaster's executor, one call at a time.

    <storage folder>/decisions/<job id>.json        created before publication, removed with the record
    <storage folder>/results/<job id>.json          created last

Without a storage folder the decision lies in the first sink's staging folder, and nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from engine.commit.decision import (
    DECISION_FILE,
    DecidedOutput,
    DecidedText,
    Decision,
    DecisionStore,
    decided_output,
)
from engine.commit.output_check import check_outputs, resolve_target, sinks_of
from engine.commit.publish import publish
from engine.commit.result_record import JobResultRecord, JobResultStore
from engine.commit.staging import create_staging, remove_staging, sweep_stale
from engine.connectors.records_manifest import MANIFEST_NAME
from engine.connectors.records_parts import WrittenPart, records_manifest
from engine.errors import FencedError, JobExecutionError, PlanError
from engine.fault_points import reach
from engine.graph.deployment import StagedFile
from engine.graph.job_graph import JobGraph
from engine.graph.source_spec import SinkSpec


class JobCommit:
    """Staging, decision and publication of a job's outputs."""

    def __init__(
        self, job_graph: JobGraph, epoch: int, is_leading: Callable[[], bool], storage_folder: Path | None = None
    ) -> None:
        self._job_id = job_graph.job_id
        self._sinks = sinks_of(job_graph)
        self._parallelism: dict[int, int] = {}
        self.revise(job_graph)
        self._epoch = epoch
        self._is_leading = is_leading
        self._name = job_graph.name
        self._storage_folder = storage_folder
        self._staging: dict[int, Path] = {}
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
        self._refuse_ended()
        check_outputs(sink.spec for sink in self._sinks)
        for sink in self._sinks:
            target = self._targets[sink.sink_index]
            sweep_stale(target)
            try:
                self._staging[sink.sink_index] = create_staging(target, self._job_id)
            except OSError as error:
                raise JobExecutionError(f"output {sink.spec.path} cannot be staged: {error}") from error
        return {sink_index: str(path) for sink_index, path in self._staging.items()}

    def _refuse_ended(self) -> None:
        if self._storage_folder is None:
            return
        ended = JobResultStore(_made(self._storage_folder / "results")).read(self._job_id)
        if ended is not None:
            raise PlanError(f"job {self._job_id} has run before: it is {ended.status}")

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
            output = decided_output(sink.sink_index, target, staging, sink.spec.overwrite, own)
            outputs.append(_with_manifest(output, sink.spec, own))
        if not self._is_leading():
            raise FencedError(self._epoch + 1, self._epoch)
        reach("sink.deciding")
        decision = self._store().decide(Decision(self._job_id, self._epoch, tuple(outputs)))
        reach("sink.decided")
        publish(decision)
        reach("sink.published")

    def abort(self) -> None:
        """Remove staging."""
        for path in self._staging.values():
            remove_staging(path)

    def record(self, status: str, runtime_ms: int, message: str = "") -> None:
        """Record how the job ended; FencedError when a later leader has recorded it."""
        if self._storage_folder is None:
            return
        record = JobResultRecord(self._job_id, self._name, status, self._epoch, runtime_ms, message)
        JobResultStore(_made(self._storage_folder / "results")).write(record)
        self._store().path(self._job_id).unlink(missing_ok=True)

    def _store(self) -> DecisionStore:
        if self._storage_folder is not None:
            return DecisionStore(_made(self._storage_folder / "decisions"))
        return DecisionStore(self._staging[self._sinks[0].sink_index], DECISION_FILE)


def _with_manifest(output: DecidedOutput, spec: SinkSpec, staged: Iterable[StagedFile]) -> DecidedOutput:
    """Return an output, for records with the manifest that follows from what their writers reported."""
    if spec.format != "records":
        return output
    statistics = {file.name: file.statistics_json for file in staged}
    parts = [WrittenPart(file.part, file.row_count, file.size_bytes, statistics[file.name]) for file in output.files]
    manifest = DecidedText(MANIFEST_NAME, records_manifest(spec.schema_ipc, parts).decode())
    return msgspec.structs.replace(output, texts=(manifest,))


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
