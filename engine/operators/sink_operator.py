"""The end of a chain that writes outside: a staged file of a subtask's attempt, and another one when that is full.

Rows of a partitioned output come in the order of their partitions, so one file is open at a time however many there
are: it ends where the next partition begins.

The files lie in the sink's staging folder, under names that no other attempt uses, in the order of their rows. What
becomes of them is decided by the JobMaster when the whole job is finished (``engine.commit``).

Held by: tests/integration/test_sinks.py
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import msgspec

from engine.commit.targets import target_named
from engine.connectors.partition_runs import PartitionRuns
from engine.connectors.sink_writer import finished, open_sink_writer
from engine.errors import EngineError, ResourceError
from engine.expressions.schema_bridge import to_arrow_schema
from engine.formats.registry import sink_format_of
from engine.formats.sink_format import PacedWriter, PartitionedRows, SinkWriter, is_paced
from engine.graph.deployment import StagedFile
from engine.graph.operator_descriptor import SinkOperator
from engine.operators.operator import ChainedOperator, Output, TaskContext
from engine.records.arrow_batch import batch_bytes
from engine.records.wide_rows import room_for, width_of
from engine.storage.file_systems import file_system_of

if TYPE_CHECKING:
    import pyarrow as pa


class FileSink(ChainedOperator):
    """Writes batches to the attempt's staged files."""

    #: a sink takes everything
    is_satisfied = False

    def open(self, context: TaskContext, output: Output) -> None:
        """Create the attempt's file."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, SinkOperator)
        staging = next(sink for sink in context.descriptor.sinks if sink.sink_index == operator.sink_index)
        self._sink_index, self._spec = operator.sink_index, operator.spec
        self._target, self._staging = operator.spec.path, staging.staging_path
        self._place = target_named(staging.target)
        self._file_count = 0
        #: index of this sink's latest file among those of the task
        self._latest = -1
        #: full files, kept until the attempt's last one
        self._full: list[str] = []
        self._writer: SinkWriter | None = None
        #: writer of the previous file
        self._former: SinkWriter | None = None
        self._schema = to_arrow_schema(self.descriptor.input_schemas[0])
        self._runs: PartitionedRows | None = None
        if self._spec.partition_by:
            own = sink_format_of(self._spec).runs(self._spec, self._schema)
            self._runs = own or PartitionRuns(self._schema, self._spec.partition_by)
        #: partition whose file is open
        self._folder = ""
        # Also a subtask without rows has a file, where files are not added to others.
        if self._runs is None and not self._spec.mode:
            self._open_writer()

    def _open_writer(self) -> SinkWriter:
        """Create the attempt's next file."""
        attempt = self.context.descriptor.attempt
        stem = f"{self._sink_index}-{attempt.subtask_index:05d}-{attempt.nonce}-{self._file_count:05d}"
        ending = sink_format_of(self._spec).file_ending(self._spec)
        self._name = self._place.attempt_name(stem, ending, self._folder)
        self._path = f"{self._staging}/{self._name}"
        self._file_count += 1
        with self._naming_the_output():
            folders = file_system_of(self._path).folders
            if folders is not None and "/" in self._name:
                folders.make(self._path.rpartition("/")[0])
            schema = self._schema if self._runs is None else self._runs.schema
            self._writer = open_sink_writer(self._spec, schema, self._path, self._former)
        return self._writer

    def process(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""
        if batch.num_rows == 0:
            return  # behind a file that is full, it needs no other one
        if self._runs is None:
            self._write(batch)
            return
        for folder, rows in self._runs.of(batch):
            if folder != self._folder:
                self._end_file()
                self._folder = folder
            self._write(rows)

    def _write(self, batch: pa.RecordBatch) -> None:
        """Write rows of one file."""
        writer = self._writer or self._open_writer()
        if is_paced(type(writer)):
            cast("PacedWriter", writer).wait_for_room(lambda: self.context.is_cancelled)
        width = width_of(batch_bytes(batch), batch.num_rows)
        with room_for(width, is_ended=lambda: self.context.is_cancelled), self._naming_the_output():
            writer.write(batch)
            self.context.arrow_peak.look()
        self.rows_out += batch.num_rows
        if writer.is_full or self._has_target_size():
            self._end_file()

    def _has_target_size(self) -> bool:
        """Whether the file has as many bytes as the user wants; what its writer still holds comes on top."""
        wanted, most = self._spec.target_file_bytes, self._place.file_bytes_max
        wanted = min(wanted or most, most or wanted)
        return bool(wanted) and file_system_of(self._path).written_bytes(self._path) >= wanted

    def _end_file(self) -> None:
        """Complete the file that is open; what follows goes into another one."""
        if self._writer is not None:
            self._full.append(self._path)
            self._finish_writer(self._writer)

    @contextmanager
    def _naming_the_output(self) -> Iterator[None]:
        """Raise what the operating system refuses as an error that says which output, and what to do."""
        try:
            yield
        except EngineError:
            raise
        except OSError as error:
            reason = str(error)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                free = file_system_of(self._staging).free_bytes(self._staging)
                reason = f"no space left on its disk ({free} bytes free): free some, or write to another disk"
            raise ResourceError(f"output {self._target} cannot be written: {reason}") from error

    def finish(self) -> None:
        """Complete the last file."""
        if self._writer is not None:
            self._finish_writer(self._writer)
        elif self._latest < 0:
            staged = self.context.staged_files
            staged.append(StagedFile(self._sink_index, self.context.descriptor.subtask_index, "", 0, 0))
        self._full.clear()

    def _finish_writer(self, writer: SinkWriter) -> None:
        """Complete a file and report it."""
        with self._naming_the_output():
            row_count, size_bytes, statistics_json = finished(writer)
        self._former, self._writer = writer, None
        staged = self.context.staged_files
        if self._latest >= 0 and statistics_json:
            former = staged[self._latest]
            handed_on = sink_format_of(self._spec).handed_on
            former_json, statistics_json = handed_on(former.statistics_json, statistics_json)
            staged[self._latest] = msgspec.structs.replace(former, statistics_json=former_json)
        self._latest = len(staged)
        staged.append(
            StagedFile(
                self._sink_index,
                self.context.descriptor.subtask_index,
                self._name,
                row_count,
                size_bytes,
                statistics_json,
                self._folder,
            )
        )

    def close(self) -> None:
        """Remove the files of an attempt that has not finished."""
        if getattr(self, "_writer", None) is not None:
            assert self._writer is not None
            self._writer.abort()
            self._writer = None
        for path in getattr(self, "_full", ()):
            file_system_of(path).delete(path)
