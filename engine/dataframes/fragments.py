"""Fragments: the work of a task of Spark, a small plan on an embedded cluster over the rows of its partition.

    batches of Spark ─► Arrow file in a folder of the process ─► sources of the plan ─► embedded cluster, one subtask
                                                                 sink: Arrow file ─► batches of Spark

A partition may be larger than memory: rows in and out lie in files, and what is between spills. The embedded cluster
stays for the tasks that the same worker runs later. Functions find modules where the driver found them.

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from engine.api.results import read_parts
from engine.connectors.arrow_files import arrow_files_source
from engine.dataframes.carried_types import carried_schema, from_carried, to_carried
from engine.expressions.random_numbers import set_first_subtask
from engine.expressions.schema_bridge import to_arrow_schema
from engine.files.native_files import native_output
from engine.graph.plan import Plan, PlanNode, Sink, Source, decode_plan
from engine.graph.plan_schema import PlanSchema
from engine.graph.source_spec import ArrowSource, SinkSpec, SourceStatistics
from engine.private_folder import scratch_folder
from engine.spark.driver_program import OfTheDriver
from engine.spark.failures import carried as carried_failure
from engine.storage.file_systems import LOCAL

#: function that runs a plan in this process with settings; workers find it by its name
RunPlan = Callable[[Plan, Mapping[str, object]], None]

#: rows of a batch returned to Spark
_BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True)
class Fragment(OfTheDriver):
    """A plan whose first nodes are empty sources, one for each input, to be run over rows that Spark passes.

    ``plan``: encoded; its last node is the one whose rows are wanted, there is no sink. ``settings`` are those of the
    job, and ``path`` where modules are looked for.
    """

    plan: bytes
    run_plan: RunPlan
    settings: Mapping[str, object]
    path: tuple[str, ...] = field(default=())

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that the plan makes of those of its only input, as Spark carries them."""
        yield from self._run(1, ((0, batch) for batch in batches))

    def of_nothing(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that a plan with sources of its own makes."""
        yield from self._run(0, ())

    def run_split(self, batches: Iterable[pa.RecordBatch], schemas: Sequence[pa.Schema]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that the plan makes of several inputs.

        batches: a column with the side of each row, then a column of structs for each side.
        """
        yield from self._run(len(schemas), _of_sides(batches, schemas))

    def _run(self, count: int, batches: Iterable[tuple[int, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        for entry in self.path:
            if entry not in sys.path:
                sys.path.append(entry)
        context = TaskContext.get()
        if context is not None:
            # Each task has numbers and places of its own: rand, row_place.
            set_first_subtask(context.partitionId())
        # The folder is removed when the rows are taken, or when their iterator is dropped.
        with tempfile.TemporaryDirectory(prefix="drey-spark-", dir=scratch_folder()) as name:
            try:
                schema, rows = self._result(Path(name), count, batches)
            except Exception as error:
                raise carried_failure(error) from None
            carried = carried_schema(schema)
            for batch in rows.to_batches(max_chunksize=_BATCH_ROWS):
                yield to_carried(batch, carried)

    def _result(
        self, folder: Path, count: int, batches: Iterable[tuple[int, pa.RecordBatch]]
    ) -> tuple[pa.Schema, pa.Table]:
        plan = decode_plan(self.plan)
        nodes = list(plan.nodes)
        folders = [folder / f"input-{index}" for index in range(count)]
        with contextlib.ExitStack() as stack:
            inputs = [stack.enter_context(_Input(folders[index], nodes[index])) for index in range(count)]
            for index, batch in batches:
                inputs[index].write(batch)
        nodes[:count] = [each.source() for each in inputs]
        last = nodes[-1]
        nodes.append(PlanNode(len(nodes), Sink(SinkSpec("arrow", str(folder / "result"))), (last.id,), last.schema))
        self.run_plan(Plan(tuple(nodes), (len(nodes) - 1,), plan.name), self.settings)
        for each in folders:
            LOCAL.delete_tree(os.fspath(each))
        schema = to_arrow_schema(last.schema)
        return schema, read_parts(folder / "result", schema)


def _of_sides(batches: Iterable[pa.RecordBatch], schemas: Sequence[pa.Schema]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each side; a number that no side has is of no row."""
    for batch in batches:
        for index, schema in enumerate(schemas):
            own = batch.filter(pc.equal(batch.column(0), index))
            if own.num_rows:
                yield index, pa.RecordBatch.from_arrays(own.column(1 + index).flatten(), schema=schema)


class _Input:
    """Rows of one input, written to a file as they come."""

    def __init__(self, folder: Path, node: PlanNode) -> None:
        self._folder, self._node = folder, node
        self._schema = to_arrow_schema(node.schema)
        self._nullable = pa.schema([each.with_nullable(True) for each in self._schema])

    def __enter__(self) -> Self:
        LOCAL.folders.make(os.fspath(self._folder))
        self._file = native_output(os.fspath(self._folder / "part-00000.arrow"))
        self._writer = pa.ipc.new_file(self._file, self._nullable)
        return self

    def __exit__(self, *_error: object) -> None:
        self._writer.close()
        self._file.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows as Spark carries them."""
        self._writer.write_batch(from_carried(batch, self._schema))

    def source(self) -> PlanNode:
        """Return the source of all of them."""
        spec, statistics = arrow_files_source(self._folder, self._nullable, "rows of Spark")
        return msgspec.structs.replace(self._node, operator=Source(spec, statistics))


def input_node(index: int, schema: PlanSchema) -> PlanNode:
    """Return the empty source that stands for an input."""
    spec = ArrowSource((), (), schema.names)
    return PlanNode(index, Source(spec, SourceStatistics(None, None, "rows of Spark")), (), schema)


@dataclass(frozen=True)
class EachPartition:
    """A function for ``mapInArrow``: the fragment over the rows of a partition."""

    fragment: Fragment
    #: False: without rows nothing is run
    is_of_rows: bool = True

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the result of a partition."""
        rows = (batch for batch in batches if batch.num_rows)
        first = next(rows, None)
        if first is None and self.is_of_rows:
            return
        yield from self.fragment.run(_again(first, rows))


def _again(first: pa.RecordBatch | None, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if first is not None:
        yield first
    yield from others


def fragment_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of the embedded clusters in Spark's workers, of which a machine has several."""
    own = {"taskmanager.memory.process.size": "512mb", "python.execution-mode": "thread"}
    return {**own, **settings, "parallelism.default": 1}
