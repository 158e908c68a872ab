"""Tasks without operators: what a vertex does is a function of the test, chosen by the vertex's name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

from engine.errors import TaskCancelledError
from engine.gateways.insight import TaskActivity
from engine.gateways.memory_use import MemoryInUse
from engine.graph.deployment import RangeSamples, StagedFile, TaskCounters, TaskDeploymentDescriptor
from engine.graph.packed_sizes import packed_sizes
from engine.ids import ExecutionAttemptId, JobId, ResourceId, ResultPartitionId


class FakeTask:
    """Runs ``body(task)``; a body that waits uses ``task.wait_cancelled``."""

    def __init__(self, resources: FakeResources, descriptor: TaskDeploymentDescriptor) -> None:
        self.descriptor = descriptor
        self.resources = resources
        self.cancelled = threading.Event()
        self.staged: list[StagedFile] = []
        self.rows = 0
        self.doing = TaskActivity.BUSY

    def run(self) -> None:
        self.resources.log("start", self)
        self.resources.bodies.get(self.descriptor.vertex_name, lambda task: None)(self)
        if self.cancelled.is_set():
            raise TaskCancelledError("cancelled")
        for sink in self.descriptor.sinks:
            name = f"{sink.sink_index}-{self.descriptor.subtask_index:05d}-{self.descriptor.attempt.nonce}.csv"
            text = f"{self.descriptor.subtask_index}\n"
            (Path(sink.staging_path) / name).write_text(text, encoding="utf-8")
            self.staged.append(StagedFile(sink.sink_index, self.descriptor.subtask_index, name, 1, len(text)))
        self.rows += 1
        self.resources.log("end", self)

    def cancel(self) -> None:
        self.cancelled.set()

    def wait_cancelled(self, timeout_s: float = 30.0) -> None:
        assert self.cancelled.wait(timeout_s), "nobody cancelled the task"

    def activity(self) -> TaskActivity:
        return self.doing

    def wait(self) -> None:
        return None

    def counters(self) -> TaskCounters:
        return TaskCounters(rows_in=self.rows, rows_out=self.rows)

    def staged_files(self) -> tuple[StagedFile, ...]:
        return tuple(self.staged)

    def partition_rows(self) -> tuple[int, ...]:
        return tuple(0 for _ in self.descriptor.partitions)

    def partition_bytes(self) -> tuple[int, ...]:
        return self.partition_rows()

    def partition_samples(self) -> tuple[RangeSamples, ...]:
        return ()

    def subpartition_bytes(self) -> tuple[bytes, ...]:
        return tuple(packed_sizes((0,) * each.subpartition_count) for each in self.descriptor.partitions)


class FakeResources:
    """Stands in for the memory, disk and network of a process."""

    def __init__(self, pages: int = 4096) -> None:
        self.sizes = SimpleNamespace(pages=pages, spare_pages=0)
        self.bodies: dict[str, Callable[[FakeTask], None]] = {}
        self.events: list[tuple[str, str, int]] = []
        self.descriptors: list[TaskDeploymentDescriptor] = []
        self.released: list[ResultPartitionId] = []
        self.ended_jobs: list[JobId] = []
        self.is_prepared = False
        self.is_closed = False

    def __call__(self, resource_id: ResourceId, slot_count: int) -> FakeResources:
        return self

    def log(self, event: str, task: FakeTask) -> None:
        self.events.append((event, task.descriptor.vertex_name, task.descriptor.subtask_index))

    def create_invokable(self, descriptor: TaskDeploymentDescriptor) -> FakeTask:
        self.descriptors.append(descriptor)
        return FakeTask(self, descriptor)

    def release_partition(self, partition: ResultPartitionId) -> None:
        self.released.append(partition)

    def memory_in_use(self, resource_id: ResourceId) -> MemoryInUse:
        return MemoryInUse(resource_id, resident_bytes=1 << 20)

    def release_attempts(self, job_id: JobId, attempts: Iterable[ExecutionAttemptId]) -> None:
        self.ended_jobs.append(job_id)

    def prepare(self) -> None:
        self.is_prepared = True

    def close(self) -> None:
        self.is_closed = True
