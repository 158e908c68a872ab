"""``format("drey")`` of Spark: record data sets, written by its tasks and read by them, as Arrow batches.

    df.write.format("drey").mode("append" | "overwrite").save(folder)
        driver  begin_write ─► executors  a RecordsWriter for each attempt ─► driver  commit_write | abort_write
    spark.read.format("drey").option("columns", "a,b").load(folder)
        driver  manifest, footers ─► partitions, each some row groups of one or more parts ─► executors  batches of them

The folder is seen by the driver and by all executors. What is written appears at once and whole (``manifest_switch``).

Spark finds the format by ``register(spark)``; where the package is installed, not a checkout, Spark 4 finds it by name
(``pyspark_drey``). Its interface tells a reader nothing of the columns that a query needs: ``columns`` does. Filters
reach it with the option ``pushFilters``, which needs ``spark.sql.python.filterPushdown.enabled``, and leave out row
groups by their bounds; Spark checks the rows that come.

Held by: tests/spark/test_data_source.py
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Never

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from engine.connectors.records_manifest import read_manifest
from engine.connectors.records_parts import WrittenPart
from engine.connectors.records_writer import RecordsWriter
from engine.errors import DataError, PlanError
from engine.files.native_files import path_or_stream
from engine.files.paths import local_folder
from engine.parquet.pages import flat_leaves
from engine.records.plain_types import plain_batch
from engine.spark.arrow_types import fitted, records_schema, sparks_arrow_schema, sparks_schema
from engine.spark.column_names import listed_names
from engine.spark.driver_program import OfTheDriver
from engine.spark.failures import plainly_told
from engine.spark.manifest_switch import Promises, abort_write, begin_write, commit_write
from engine.spark.order_check import OrderCheck
from engine.statistics.column_statistics import footer_bounds
from engine.storage.file_systems import LOCAL

NAME = "drey"
_OPTIONS = ("columns", "path", "pushFilters", "sortBy")
#: bytes of Parquet per task
_PARTITION_BYTES = 64 << 20
#: bytes that opening a file counts as, so that tasks of tiny files stay small (spark.sql.files.openCostInBytes)
_OPENING_BYTES = 2 << 20
_BATCH_ROWS = 32 << 10


class DreyDataSource(DataSource):
    """Record data sets of Drey as a data source of Spark.

    Example:
        register(spark)
        df.write.format("drey").mode("overwrite").save("/data/prices")
        spark.read.format("drey").load("/data/prices")
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format()``."""
        return NAME

    @plainly_told()
    def schema(self) -> StructType:
        """Return the columns of the data set, or those of the option ``columns``."""
        folder = _folder(self.options)
        return sparks_schema(_chosen(_stored_schema(folder), self.options, folder))

    @plainly_told()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a schema's columns."""
        takes_filters = self.options.get("pushFilters", "false").lower() == "true"
        reader = FilteringReader if takes_filters else DreyReader
        return reader(_folder(self.options), schema)

    @plainly_told()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer of a schema's rows."""
        rows = records_schema(schema)
        return DreyWriter(_folder(self.options), rows, overwrite=overwrite, sorted_by=_order(rows, self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a reader that refuses to read a stream: an error here would be lost on its way through Spark."""
        return NoStream()

    @plainly_told()
    def streamWriter(self, schema: StructType, overwrite: bool) -> Never:  # noqa: N802 - Spark's name
        """Refuse to write a stream, and name the way to write its batches."""
        raise PlanError(
            f"format('{NAME}') is no sink of streams: writeStream.foreachBatch(lambda rows, number: "
            f"rows.write.format('{NAME}').mode('append').save(folder)) appends each batch, twice where Spark repeats it"
        )


def register(spark: SparkSession) -> None:
    """Register ``format("drey")`` with a session, for writes by the calling thread of the driver, too.

    Spark looks a format up in the session that is active in the thread, and a thread that a program starts has none.
    """
    spark.dataSource.register(DreyDataSource)
    spark.createDataFrame([], "n INT")  # makes its session the active one of this thread


def _folder(options: Mapping[str, str]) -> Path:
    if "location" in options:
        raise PlanError(
            f"format('{NAME}') is no table of Spark's catalog, which does not tell a data source in Python where it "
            f"lies; CREATE TEMPORARY VIEW name USING {NAME} OPTIONS (path '{options['location']}') does"
        )
    if "paths" in options:
        raise PlanError(f"format('{NAME}') loads one folder at a time; load each, and union what comes")
    known = {name.lower() for name in _OPTIONS}
    unknown = sorted(name for name in options if name.lower() not in known)
    if unknown:
        raise PlanError(f"format('{NAME}') has no option {unknown[0]!r}; it has {', '.join(_OPTIONS)}")
    path = options.get("path")
    if not path:
        raise PlanError(
            f"format('{NAME}') needs a folder: load(path) or save(path). Spark's catalog does not tell a data source "
            f"in Python where its table lies: in place of a table, CREATE TEMPORARY VIEW name USING {NAME} "
            "OPTIONS (path '/FOLDER')"
        )
    return Path(local_folder(path, NAME))


def _stored_schema(folder: Path) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(read_manifest(folder).schema))


def _chosen(schema: pa.Schema, options: Mapping[str, str], folder: Path) -> pa.Schema:
    text = options.get("columns")
    if not text:
        return schema
    return _of_names(schema, listed_names("columns", text), folder)


def _of_names(schema: pa.Schema, names: Sequence[str], folder: Path) -> pa.Schema:
    for name in names:
        if name not in schema.names:
            raise PlanError(f"{folder} has no column {name!r}; it has {', '.join(schema.names)}")
    return pa.schema([schema.field(name) for name in names])


def _order(schema: pa.Schema, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns by which the rows of each task come sorted; PlanError for one that has no order of its own."""
    names = listed_names("sortBy", options.get("sortBy", ""))
    for name in names:
        if name not in schema.names:
            raise PlanError(f"sortBy: no column {name!r}; there are {', '.join(schema.names)}")
        kind = schema.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_floating(kind):
            raise PlanError(f"sortBy: column {name!r} is {kind}, which Spark and Drey may sort in another way")
    return names


class RowGroups(NamedTuple):
    """Row groups of a part that follow each other."""

    path: str
    first: int
    end: int


@dataclass(frozen=True)
class ReadTogether(InputPartition):
    """The input of one task: row groups of parts, in the order of the data set."""

    pieces: tuple[RowGroups, ...]


class DreyReader(OfTheDriver, DataSourceReader):
    """Reads a data set as it was when the reader was made."""

    def __init__(self, folder: Path, wanted: StructType) -> None:
        manifest = read_manifest(folder)
        self._paths = [str(folder / file.name) for file in manifest.files if file.rows]
        self._schema = pa.ipc.read_schema(pa.py_buffer(manifest.schema))
        self._names = list(wanted.names)
        known = sparks_schema(_of_names(self._schema, self._names, folder))
        for there, own in zip(known, wanted, strict=True):
            # without what is said of nulls
            kinds = there.dataType.simpleString(), own.dataType.simpleString()
            if kinds[0] != kinds[1]:
                raise PlanError(
                    f"{folder}: column {own.name!r} is {kinds[0]}, not {kinds[1]}; leave out schema(), and cast what "
                    "is read"
                )
        self._filters: list[Filter] = []

    @plainly_told()
    def partitions(self) -> Sequence[InputPartition]:
        """Return the row groups to read, those together that are near each other, up to 64 MiB."""
        found: list[ReadTogether] = []
        pieces: list[RowGroups] = []
        size_bytes = 0
        for path in self._paths:
            opening_bytes = _OPENING_BYTES
            for index, group_bytes in self._wanted_groups(path):
                added_bytes = group_bytes + opening_bytes
                if pieces and size_bytes + added_bytes > _PARTITION_BYTES:
                    found.append(ReadTogether(tuple(pieces)))
                    pieces, size_bytes = [], 0
                    added_bytes = group_bytes + _OPENING_BYTES
                if pieces and pieces[-1].path == path and pieces[-1].end == index:
                    pieces[-1] = pieces[-1]._replace(end=index + 1)
                else:
                    pieces.append(RowGroups(path, index, index + 1))
                size_bytes += added_bytes
                opening_bytes = 0
        return [*found, ReadTogether(tuple(pieces))]

    def _wanted_groups(self, path: str) -> Iterator[tuple[int, int]]:
        """Yield number and size in bytes of the row groups of a part in which a row may match."""
        footer = pq.read_metadata(path_or_stream(path))
        places = flat_leaves(footer.schema)
        for index in range(footer.num_row_groups):
            group = footer.row_group(index)
            if all(_may_match(group, places, one) for one in self._filters):
                yield index, group.total_byte_size

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition as Spark takes them."""
        assert isinstance(partition, ReadTogether)
        schema = sparks_arrow_schema(pa.schema([self._schema.field(name) for name in self._names]))
        with plainly_told():
            for piece in partition.pieces:
                try:
                    with pq.ParquetFile(path_or_stream(piece.path), page_checksum_verification=True) as file:
                        groups = range(piece.first, piece.end)
                        for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=self._names):
                            yield fitted(plain_batch(batch), schema, f"file {piece.path}")
                except (pa.ArrowInvalid, OSError) as error:
                    raise DataError(f"file {piece.path}: {error}") from error


class NoStream(DataSourceStreamReader):
    """Refuses to be a stream where Spark asks for its begin."""

    @plainly_told()
    def initialOffset(self) -> Never:  # noqa: N802 - Spark's name
        """Raise PlanError."""
        raise PlanError(f"format('{NAME}') is no source of streams: read it with spark.read")

    def read(self, partition: InputPartition) -> Never:
        """Raise AssertionError: a stream without a begin has no partitions."""
        raise AssertionError("a stream that never began")


class FilteringReader(DreyReader):
    """Leaves out row groups in which no row can match what the query asks for.

    A class of its own: Spark refuses readers that take filters where its setting is off.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Keep filters that bounds of row groups can decide; Spark looks at all of them again."""
        self._filters = [one for one in filters if isinstance(one, (*_COMPARISONS, In)) and len(one.attribute) == 1]
        return filters


_COMPARISONS = (EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)


def _may_match(group: pq.RowGroupMetaData, places: Mapping[str, int], one: Any) -> bool:
    """Return whether a row group's bounds leave it open that rows match a filter."""
    place = places.get(one.attribute[0])
    known = None if place is None else group.column(place).statistics
    bounds = footer_bounds(known) if known is not None and known.has_min_max else None
    # Bounds know nothing of NaN, which is the greatest for Spark.
    if bounds is None or isinstance(bounds[0], float):
        return True
    low, high = bounds
    values = one.value if isinstance(one, In) else (one.value,)
    try:
        if isinstance(one, GreaterThan):
            return bool(high > one.value)
        if isinstance(one, GreaterThanOrEqual):
            return bool(high >= one.value)
        if isinstance(one, LessThan):
            return bool(low < one.value)
        if isinstance(one, LessThanOrEqual):
            return bool(low <= one.value)
        return any(low <= value <= high for value in values)
    except TypeError:
        return True


@dataclass
class WrittenParts(WriterCommitMessage):
    """The parts that one attempt of a task has written."""

    parts: tuple[WrittenPart, ...]


class DreyWriter(OfTheDriver, DataSourceArrowWriter):
    """Writes rows as parts of a record data set, which appear at once."""

    def __init__(self, folder: Path, schema: pa.Schema, *, overwrite: bool, sorted_by: tuple[str, ...] = ()) -> None:
        self._folder = folder
        self._schema_ipc = schema.serialize().to_pybytes()
        self._overwrite = overwrite
        self._sorted_by = sorted_by
        self._staging = begin_write(folder, schema, overwrite=overwrite)

    @property
    def _schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self._schema_ipc))

    @plainly_told()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write what one task has; names of files are of this attempt alone."""
        schema, attempt = self._schema, uuid.uuid4().hex
        parts: list[WrittenPart] = []
        writer: RecordsWriter | None = None
        order = OrderCheck(self._sorted_by)
        try:
            for batch in iterator:
                if not batch.num_rows:
                    continue
                if writer is None:
                    path = self._staging / f"{attempt}-{len(parts):05d}.parquet"
                    writer = RecordsWriter(schema, str(path))
                rows = fitted(batch, schema, "rows to write")
                order.look(rows)
                writer.write(rows)
                if writer.is_full:
                    parts.append(_finished(writer, path))
                    writer = None
            if writer is not None:
                parts.append(_finished(writer, path))
        except BaseException:
            if writer is not None:
                writer.abort()
            for part in parts:
                LOCAL.delete(os.fspath(self._staging / part.name))
            raise
        return WrittenParts(tuple(parts))

    @plainly_told()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make what the tasks have written part of the data set."""
        parts = [part for message in messages if isinstance(message, WrittenParts) for part in message.parts]
        promises = Promises(sorted_by=self._sorted_by)
        commit_write(self._folder, self._staging, self._schema, parts, promises, overwrite=self._overwrite)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what the tasks have written."""
        abort_write(self._staging)


def _finished(writer: RecordsWriter, path: Path) -> WrittenPart:
    rows, size_bytes, statistics = writer.finish()
    LOCAL.folders.sync_file(os.fspath(path))
    return WrittenPart(path.name, rows, size_bytes, statistics)
