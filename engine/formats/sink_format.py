"""SinkFormat: the answers of one format that rows are written as, in one place.

    caller                    asks the entry                            without an answer of its own
    calls that write          call, checked                             any rows, no compression
    rows added to files       found_schema, stored_schema               files that are there are not looked at
                              fits, is_by_place, check_added            columns of the same types are read together
    JobMaster                 target                                    files in a folder, by its file system
                              is_passing, completed                     files are made durable, and none is beside them
    tasks                     writer, extension, modules                (must be said), its name, nothing is loaded
                              runs, handed_on                           folders of values, each file tells of itself
                              is_compressed_whole                       a codec is within a file
    Spark                     is_of_client                              tasks of Spark write

An entry has no state; ``registry`` holds one of each. The module of an entry is loaded by the JobManager too, so that
Arrow is imported where it is used.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, runtime_checkable

import msgspec

from engine.commit.decision import DecidedOutput
from engine.commit.output_target import OutputTarget
from engine.commit.targets import target_of_path
from engine.errors import ConfigurationError
from engine.graph.deployment import StagedFile
from engine.graph.source_spec import SinkSpec

if TYPE_CHECKING:
    import pyarrow as pa


#: formats that have a call of their own, write_NAME
CALLS: Final = frozenset({"csv", "parquet", "records", "text", "json", "ipc", "orc", "excel"})


class SinkWriter(Protocol):
    """Writes one staged file."""

    @property
    def is_full(self) -> bool:
        """Whether what follows belongs into another file; it may be appended all the same."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch of the schema."""
        ...

    def finish(self) -> tuple[int, int, str]:
        """Complete the file; return (rows, bytes, statistics as JSON or "")."""
        ...

    def abort(self) -> None:
        """Close and remove the file; does nothing after ``finish``."""
        ...


class PartitionedRows(Protocol):
    """Divides batches, whose rows come in the order of their partitions."""

    #: the columns of files
    schema: pa.Schema

    def of(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield a text that only one partition has, and its rows, for each run of a partition."""
        ...


@runtime_checkable
class PacedWriter(Protocol):
    """A writer that may have to wait before it takes more."""

    def wait_for_room(self, is_ended: Callable[[], bool]) -> None:
        """Wait, until the task is to end."""
        ...


@cache
def is_paced(writer_type: type) -> bool:
    """Return whether writers of a type are paced; asked of an instance it takes as long as opening a file."""
    return issubclass(writer_type, PacedWriter)


class SinkFormat(ABC):
    """An entry: the answers of one format to questions about its sinks."""

    #: the word for it in specifications and in explain
    name: ClassVar[str]
    #: the ending of a file, without its dot; "": the name
    extension: ClassVar[str] = ""
    #: flag of codecs that compress a file as a whole, and have an ending of their own
    is_compressed_whole: ClassVar[bool] = False
    #: flag of results that only the client reads, which does not outlive a crash of its machine
    is_passing: ClassVar[bool] = False
    #: flag of files that the client's machine alone sees
    is_of_client: ClassVar[bool] = False
    #: flag of outputs that are tables, which know their columns themselves
    is_table: ClassVar[bool] = False
    #: modules that a task needs, loaded beforehand
    modules: ClassVar[tuple[str, ...]] = ()
    #: bytes that libraries take in a process that uses them, as measured, beyond those that every process has
    library_bytes: ClassVar[int] = 0

    @property
    def call(self) -> str:
        """The call that writes it, for errors."""
        name = self.name.partition("_")[0]
        return f"write_{name}" if name in CALLS else f"{self.name}: write"

    # ---- calls that write

    def checked(self, spec: SinkSpec, schema: pa.Schema, file_schema: pa.Schema) -> SinkSpec:
        """Return a sink for rows, of which files have the columns of ``file_schema``.

        Raises: SchemaError (columns that the format has not), ConfigurationError (options).
        """
        if spec.compression:
            raise ConfigurationError(f"{self.call}: the format takes no compression=; leave it out")
        return spec

    # ---- rows that are added to files

    def found_schema(self, spec: SinkSpec, file: str) -> pa.Schema | None:
        """Return the columns of a file that is there, None where nothing is known of it. Raises what reading raises."""
        return None

    def stored_schema(self, spec: SinkSpec, schema: pa.Schema) -> pa.Schema:
        """Return the types that rows have when they come back from a file."""
        from engine.records.plain_types import plain_schema

        return plain_schema(schema)

    def fits(self, known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
        """Return whether values of a type are read beside existing ones; False: as text alone, None: not at all."""
        return True if known == own else None

    def is_by_place(self, spec: SinkSpec) -> bool:
        """Return whether columns of files are told apart by their places, not by names."""
        return False

    def check_added(self, spec: SinkSpec, schema: pa.Schema, file: str, what: str) -> None:
        """Raise ConfigurationError where rows cannot be beside a file that is there; ``what`` begins the error."""
        return

    def check_columns(self, spec: SinkSpec, there: pa.Schema, schema: pa.Schema, what: str) -> str:
        """Return a warning about rows with other columns than an existing file, "" for none."""
        differing = sorted(set(there.names) ^ set(schema.names))
        if not differing or spec.schema_mode != "strict":
            return ""
        return (
            f"{what} has other columns: {', '.join(differing)}; select those that are there, or pass"
            " schema_mode='union' here, and to the call that reads"
        )

    # ---- tasks, and the end of a job

    def file_ending(self, spec: SinkSpec) -> str:
        """Return the part of a file's name that follows its first dot."""
        from engine.files.compression import ENDING_OF

        ending = self.extension or self.name
        return ending + ENDING_OF.get(spec.compression, "") if self.is_compressed_whole else ending

    @abstractmethod
    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> SinkWriter:
        """Return the writer of a file, which must not exist.

        former: of the sink's file before it, which has the same schema: what is known of its columns goes on.
        """

    def target(self, spec: SinkSpec) -> OutputTarget:
        """Return the entry of the place where the output lands."""
        return target_of_path(spec.path, is_single_file=spec.is_single_file)

    def runs(self, spec: SinkSpec, schema: pa.Schema) -> PartitionedRows | None:
        """Return the division of sorted rows by their partitions; None: folders are named after values."""
        return None

    def handed_on(self, former: str, latter: str) -> tuple[str, str]:
        """Return the statistics of two files of a subtask, the latter with what it is to tell of both."""
        return former, latter

    def completed(self, output: DecidedOutput, spec: SinkSpec, staged: Sequence[StagedFile]) -> DecidedOutput:
        """Return an output with the texts that are published behind its files, such as a manifest."""
        return output


def with_written_codec(spec: SinkSpec) -> SinkSpec:
    """Return a sink whose files are compressed as a whole, with its codec. Raises: ConfigurationError.

    The name of a single file says it, as it does to readers.
    """
    from engine.files.compression import ENDING_OF, codec_of, written_codec

    codec = written_codec(spec.compression or None, f"write_{spec.format}")
    if spec.is_single_file:
        if spec.path.lower().endswith(".zip"):
            raise ConfigurationError(
                f"write_{spec.format}({spec.path!r}): zip archives are not written; name it .gz or .zst"
            )
        named = codec_of(spec.path)
        if codec and codec != named:
            raise ConfigurationError(
                f"write_{spec.format}({spec.path!r}): compression={spec.compression!r} of a single file whose name does"
                f" not say it; name it {spec.path}{ENDING_OF[codec]}"
            )
        codec = named
    return msgspec.structs.replace(spec, compression=codec)
