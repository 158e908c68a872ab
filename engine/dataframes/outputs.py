"""Sinks: files that tasks of Spark write with the engine's writers, published by the driver all at once.

    task    rows ─► staging/<sink>-<partition>-<nonce>-<n>.ext     a row of Spark for each file that is whole
    driver  the rows that came back ─► decision ─► publish         others are leftovers, which go with staging

An attempt that failed, was repeated or speculated on has written files that no manifest names. The parts of the target
are numbered by partition, so a sort's order is theirs.

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from engine.commit.decision import DecidedOutput, Decision
from engine.commit.publish import publish
from engine.commit.targets import target_named
from engine.connectors.partition_runs import PartitionRuns
from engine.connectors.sink_writer import finished, open_sink_writer
from engine.dataframes.carried_types import from_carried
from engine.dataframes.frame import Frame
from engine.errors import PlanError
from engine.expressions.schema_bridge import to_arrow_schema
from engine.formats.output_check import check_outputs, staging_of, target_of
from engine.formats.registry import sink_format_of
from engine.formats.sink_format import PacedWriter, SinkWriter
from engine.graph.deployment import StagedFile, Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.spark.driver_program import OfTheDriver
from engine.spark.failures import carried as carried_failure
from engine.storage.file_systems import file_system_of

_STAGED: Final = "file string"


class Outputs:
    """The outputs of one job: staged one after the other, published together."""

    def __init__(self, job_id: JobId, specs: Sequence[SinkSpec]) -> None:
        for spec in specs:
            if target_of(spec).name == "store":
                raise PlanError(
                    f"output {spec.path}: target spark writes to folders of its machines alone; run the job on local or"
                    " cluster, or write to a folder and copy it"
                )
        check_outputs(specs)
        self._job_id = job_id
        self._staging: list[Staging] = []
        self._outputs: list[DecidedOutput] = []
        self._specs = list(specs)
        try:
            for spec in specs:
                target, staging = target_of(spec), staging_of(spec, job_id)
                target.sweep(staging.output, "", lambda other: False)
                target.prepare(spec, staging, job_id, "")
                self._staging.append(staging)
        except BaseException:
            self.abort()
            raise

    def write(self, index: int, frame: Frame) -> int:
        """Stage the rows of a sink; return how many there are."""
        spec, staging = self._specs[index], self._staging[index]
        schema = to_arrow_schema(frame.schema)
        task = WriteFiles(spec, index, staging.path, schema)
        if sink_format_of(spec).is_of_client:
            batches = frame.exact().toArrow().to_batches()
            files = [msgspec.json.decode(each, type=StagedFile) for each in task.written(iter(batches), 0)]
        else:
            rows = frame.exact()
            if spec.partition_by:
                keys = frame.columns_of(spec.partition_by)
                rows = rows.repartition(*keys).sortWithinPartitions(*keys)
            if spec.is_single_file:
                rows = rows.coalesce(1)
            rows = rows.mapInArrow(task, _STAGED)
            files = [msgspec.json.decode(row[0], type=StagedFile) for row in rows.select(F.col("file")).collect()]
        if not files and not spec.partition_by and not spec.mode:
            files = [msgspec.json.decode(each, type=StagedFile) for each in task.written(iter(()), 0, is_needed=True)]
        output = target_named(staging.target).decided(spec, index, staging, files, self._job_id)
        self._outputs.append(sink_format_of(spec).completed(output, spec, files))
        return sum(file.row_count for file in files)

    def publish(self) -> None:
        """Make all of them their targets."""
        publish(Decision(self._job_id, 1, tuple(self._outputs)), is_durable=False)

    def abort(self) -> None:
        """Remove what was staged."""
        for staging in self._staging:
            target_named(staging.target).abort(staging, self._job_id)


@dataclass(frozen=True)
class WriteFiles(OfTheDriver):
    """A function for ``mapInArrow``: writes the rows of a partition, and reports what it wrote."""

    spec: SinkSpec
    sink_index: int
    staging: str
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each file."""
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        try:
            files = list(self.written(batches, partition))
        except Exception as error:
            raise carried_failure(error) from None
        yield pa.record_batch({"file": pa.array([each.decode() for each in files], pa.string())})

    def written(self, batches: Iterator[pa.RecordBatch], partition: int, *, is_needed: bool = False) -> Iterator[bytes]:
        """Write rows; yield the JSON of each staged file. ``is_needed``: also without rows."""
        runs = PartitionRuns(self.schema, self.spec.partition_by) if self.spec.partition_by else None
        schema = runs.schema if runs is not None else self.schema
        nonce = uuid.uuid4().hex
        writer: SinkWriter | None = None
        folder, name, count = "", "", 0
        try:
            if is_needed:
                name = self._name(partition, nonce, count)
                writer = open_sink_writer(self.spec, schema, f"{self.staging}/{name}")
            for batch in batches:
                own = from_carried(batch, self.schema)
                for place, rows in runs.of(own) if runs is not None else [("", own)]:
                    if writer is not None and (place != folder or self._is_full(name)):
                        yield self._finished(writer, partition, name, folder)
                        writer = None
                    if writer is None and rows.num_rows:
                        folder, name, count = place, self._name(partition, nonce, count), count + 1
                        writer = open_sink_writer(self.spec, schema, f"{self.staging}/{name}")
                    if writer is not None:
                        if isinstance(writer, PacedWriter):
                            writer.wait_for_room(lambda: False)
                        writer.write(rows)
            if writer is not None:
                yield self._finished(writer, partition, name, folder)
                writer = None
        finally:
            if writer is not None:
                writer.abort()

    def _name(self, partition: int, nonce: str, count: int) -> str:
        return (
            f"{self.sink_index}-{partition:05d}-{nonce}-{count:05d}.{sink_format_of(self.spec).file_ending(self.spec)}"
        )

    def _is_full(self, name: str) -> bool:
        wanted, path = self.spec.target_file_bytes, f"{self.staging}/{name}"
        return bool(wanted) and file_system_of(path).written_bytes(path) >= wanted

    def _finished(self, writer: SinkWriter, partition: int, name: str, folder: str) -> bytes:
        row_count, size_bytes, statistics = finished(writer)
        return msgspec.json.encode(
            StagedFile(self.sink_index, partition, name, row_count, size_bytes, statistics, folder)
        )
