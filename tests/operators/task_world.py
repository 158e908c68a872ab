"""What tasks of a TaskExecutor use, in small, and descriptors of single attempts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from engine.clock import SystemClock
from engine.config.loader import configuration_from_texts
from engine.connectors.arrow_source import arrow_source
from engine.expressions.schema_bridge import to_plan_schema
from engine.functions.function_bytes import packed
from engine.graph.deployment import (
    InputGateDescriptor,
    PartitionLocation,
    ProducerPlace,
    ResultPartitionDescriptor,
    SinkStaging,
    TaskDeploymentDescriptor,
)
from engine.graph.operator_descriptor import (
    OperatorDescriptor,
    PhysicalOperator,
    PythonOperator,
    SinkOperator,
    SourceOperator,
)
from engine.graph.ship_strategy import PartitionerSpec, ResultPartitionType
from engine.graph.source_spec import SinkSpec
from engine.graph.subpartition_share import WHOLE
from engine.ids import (
    AllocationId,
    ExecutionAttemptId,
    IntermediateDataSetId,
    JobId,
    JobVertexId,
    ResourceId,
    ResultPartitionId,
)
from engine.memory.page_budget import SlotWeights, operator_pages
from engine.operators.batch_task import BatchTask
from engine.taskexecutor.task_resources import ProcessResources

SETTINGS = {
    "taskmanager.memory.process.size": "128mb",
    "taskmanager.memory.managed.size": "2mb",
    "taskmanager.memory.network.min": "1mb",
    "taskmanager.memory.network.max": "1mb",
}


def described(operator: PhysicalOperator, schema: pa.Schema, output: pa.Schema | None = None, weight: float = 0.0):
    """Return a descriptor with one input of that schema."""
    plan_schema = to_plan_schema(schema)
    target = plan_schema if output is None else to_plan_schema(output)
    return OperatorDescriptor(0, type(operator).__name__, operator, (plan_schema,), target, weight)


def python(function: object, kind: str = "map") -> PythonOperator:
    """Return an operator over anything that can be pickled."""
    return PythonOperator(kind, packed(function), "function", __file__, 1)


class TaskWorld:
    """Services of one process, the staging folder of one sink, and threads that end."""

    def __init__(self, folder: Path) -> None:
        self.staging = folder / "staging"
        self.staging.mkdir()
        configuration = configuration_from_texts({**SETTINGS, "io.tmp.dirs": str(folder / "spill")})
        self.resources = ProcessResources(ResourceId.random(), configuration, 1, SystemClock())
        self.services = self.resources.services

    def source(self, table: pa.Table):
        """Return the head that reads a table, and its splits."""
        spec, _, schema = arrow_source(table, lambda: self.staging.parent)
        return described(SourceOperator(spec), schema), spec.splits

    def sink(self, schema: pa.Schema, file_format: str = "csv"):
        """Return the end of a chain that writes files."""
        return described(SinkOperator(0, SinkSpec(file_format, str(self.staging.parent / "out"))), schema)

    def task(
        self,
        chain: Sequence[OperatorDescriptor],
        splits: Sequence = (),
        gates: Sequence[InputGateDescriptor] = (),
        partitions: Sequence[ResultPartitionDescriptor] = (),
        attempt: ExecutionAttemptId | None = None,
        slot_pages: int | None = None,
        fields: dict[str, Any] | None = None,
        **configuration: str,
    ) -> BatchTask:
        """Return an attempt of a chain alone in a slot; ``fields`` of its descriptor, configuration by keywords."""
        weights = [step.memory_weight for step in chain]
        pages = slot_pages or self.resources.sizes.pages
        descriptor = TaskDeploymentDescriptor(
            JobId.random(),
            "job",
            attempt or ExecutionAttemptId.create(JobVertexId(0), 0, 0),
            AllocationId.random(),
            "vertex",
            0,
            1,
            128,
            tuple(chain),
            tuple(splits),
            tuple(gates),
            tuple(partitions),
            (SinkStaging(0, str(self.staging)),),
            tuple(operator_pages(weight, SlotWeights.of(weights), pages) for weight in weights),
            {key.replace("__", ".").replace("_", "-"): value for key, value in configuration.items()},
        )
        return BatchTask(msgspec.structs.replace(descriptor, **(fields or {})), self.services)

    def staged(self) -> list[Path]:
        """Return the files in the staging folder."""
        return sorted(self.staging.iterdir())

    def close(self) -> None:
        """Check that tasks gave back what they took, and close."""
        services = self.services
        assert services.network_pool.pools == ()
        assert services.network_pool.in_use == 0
        assert services.memory_manager.leak_report() == []
        assert services.memory_manager.pages_unreserved == services.memory_manager.pages_total
        assert services.io_manager.buffer_bytes_out == 0
        self.resources.close()


def partition(
    schema: pa.Schema, consumers: int = 1, kind: str = "FORWARD", result_type: str = "PIPELINED", number: int = 7
) -> tuple[ResultPartitionDescriptor, ExecutionAttemptId]:
    """Return a data set and the attempt that produces it."""
    attempt = ExecutionAttemptId.create(JobVertexId(number), 0, 0)
    identity = ResultPartitionId(IntermediateDataSetId(JobVertexId(number), 0), attempt)
    partitioner = PartitionerSpec(kind, (schema.names[0],) if kind == "HASH" else ())
    return (
        ResultPartitionDescriptor(
            identity, ResultPartitionType(result_type), partitioner, consumers, consumers, to_plan_schema(schema)
        ),
        attempt,
    )


def gate(produced: ResultPartitionDescriptor, subpartition: int = 0) -> InputGateDescriptor:
    """Return the gate that reads one subpartition."""
    place = ProducerPlace(produced.id, PartitionLocation.LOCAL)
    return InputGateDescriptor(0, produced.schema, produced.result_type, (place,), (((subpartition, WHOLE),),))


def in_thread(work: Callable[[], None]) -> tuple[threading.Thread, list[BaseException]]:
    """Run in a thread; its error is put into the list."""
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # judged by the test
            errors.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    return thread, errors
