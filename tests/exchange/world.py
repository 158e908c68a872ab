"""A TaskExecutor's exchange in small: pool, manager, partitions, gates, threads that end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from engine.exchange.buffer_pool import NetworkBufferPool
from engine.exchange.input_gate import InputGate
from engine.exchange.partition_builder import new_partition
from engine.exchange.partition_folders import PartitionFolders
from engine.exchange.partition_manager import ResultPartitionManager
from engine.exchange.pipelined_partition import PipelinedPartition
from engine.exchange.record_writer import RecordWriter
from engine.exchange.record_writer_builder import RecordWriterBuilder, Writer
from engine.graph.deployment import (
    InputChannelDescriptor,
    PartitionLocation,
    ResultPartitionDescriptor,
)
from engine.graph.plan_schema import PlanSchema
from engine.graph.ship_strategy import PartitionerSpec, ResultPartitionType
from engine.ids import ExecutionAttemptId, IntermediateDataSetId, JobVertexId, ResultPartitionId

PIPELINED = ResultPartitionType.PIPELINED
BLOCKING = ResultPartitionType.BLOCKING
NO_SCHEMA = PlanSchema(())


def partition_id(subtask: int = 0, attempt: int = 0, vertex: int = 0, output: int = 0) -> ResultPartitionId:
    producer = JobVertexId(vertex)
    return ResultPartitionId(
        IntermediateDataSetId(producer, output), ExecutionAttemptId(producer, subtask, attempt, f"{attempt:016x}")
    )


def descriptor(
    subpartitions: int = 1,
    kind: str = "HASH",
    keys: Sequence[str] = (),
    result_type: ResultPartitionType = PIPELINED,
    identity: ResultPartitionId | None = None,
    **spec: Any,
) -> ResultPartitionDescriptor:
    partitioner = PartitionerSpec(kind, tuple(keys), **spec)
    identity = identity or partition_id()
    return ResultPartitionDescriptor(identity, result_type, partitioner, subpartitions, subpartitions, NO_SCHEMA)


class World:
    def __init__(self, folder: Path, segments: int = 64, segment_size: int = 4096) -> None:
        self.network = NetworkBufferPool(segments, segment_size)
        self.manager = ResultPartitionManager()
        self.folder = folder
        self.folders = PartitionFolders([folder])
        self.threads: list[threading.Thread] = []
        self.failures: list[BaseException] = []

    def partition(self, described: ResultPartitionDescriptor, bounds: tuple[int, int] | None = None) -> Any:
        partition = new_partition(described, self.network, self.folders, bounds)
        self.manager.register(partition)
        return partition

    def writer(
        self, partition: Any, schema: pa.Schema, timeout_ms: int = -1, selector: Any = None, **options: Any
    ) -> Writer:
        """Return a writer of a partition; ``selector``: in place of the one that its descriptor names, unseeded."""
        if selector is not None:
            return RecordWriter(
                partition, schema, selector, timeout_ms if isinstance(partition, PipelinedPartition) else -1
            )
        builder = RecordWriterBuilder(partition, schema).with_timeout(timeout_ms)
        for name, value in options.items():
            getattr(builder, f"with_{name}")(value)
        return builder.build()

    def gate(
        self,
        partitions: Sequence[ResultPartitionId],
        subpartition: int = 0,
        **options: Any,
    ) -> InputGate:
        channels = tuple(InputChannelDescriptor(p, PartitionLocation.LOCAL, subpartition) for p in partitions)
        return InputGate(channels, self.manager, **options)

    def run(self, work: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # shown by the test that joins
                self.failures.append(error)

        thread = threading.Thread(target=guarded, daemon=True)
        self.threads.append(thread)
        thread.start()
        return thread

    def join(self, timeout_s: float = 60) -> None:
        for thread in self.threads:
            thread.join(timeout_s)
            assert not thread.is_alive(), "a thread hangs"
        self.threads.clear()

    def close(self) -> None:
        self.manager.close()
        for pool in self.network.pools:
            pool.close()
        self.join()
        leaked = self.network.in_use
        self.network.close()
        assert leaked == 0, f"{leaked} buffers leaked"
        assert list(self.folder.iterdir()) == []
