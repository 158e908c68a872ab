"""``export_data``: a DataFrame, cleaned and checked, becomes a record data set; ``bin/spark-export`` is its command.

    read ─► trim strings ─► rows that do not parse or fail a check are set aside, and counted
         ─► Parquet parts in a staging folder, in one pass over the DataFrame
         ─► the parts are read back by the engine's own kernels: manifest with statistics and checksums
         ─► the engine opens the data set as ``read_records`` will ─► one rename publishes the folder

Nothing appears under the output's name before everything is there and can be read. A data set that is replaced, or to
which rows are added, gets a new manifest at once (``manifest_switch``). Rows that were set aside are in
``<output>.rejected``, as JSON lines with the reason; only where there are any, the DataFrame is computed a second time.

Rows beyond a watermark (``since``) are appended: the data set's own manifest says what is there, and the switch of the
manifest makes old and new rows one. A command that was killed is run again and loses and doubles nothing.

Cost: that of ``df.write.parquet`` and one to two tenths of its processor time more, up to three with many columns of
numbers; Spark never counts, caches or groups for the statistics.

Source: the two-phase commit of Spark's own file committers, reduced to one rename.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as T  # noqa: N812

from engine.commit.target_lock import target_lock
from engine.connectors.records_manifest import RecordsManifest, read_manifest, write_manifest
from engine.connectors.records_parts import merged_manifest
from engine.connectors.records_source import records_source
from engine.connectors.records_writer import written_parts
from engine.errors import PlanError
from engine.files.paths import local_path
from engine.parquet.source import plain_file_schema
from engine.spark.column_names import columns_of
from engine.spark.export_checks import MARKS, REASON, BadRows, Checks, clean
from engine.spark.export_publishing import Made, append, publish, staging
from engine.spark.export_rejected import publish_rejected, rejected_folder, strip_names, write_rejected
from engine.spark.export_report import ExportReport, exported_columns
from engine.spark.exportable import check_types, column_settings, file_settings, nullable_parts
from engine.spark.failures import errors_of_spark
from engine.spark.file_urls import url_to_read
from engine.storage.file_systems import LOCAL, file_system_of

#: size of row groups, the units that Drey's subtasks read: small enough for equal shares
_ROW_GROUP_BYTES = 8 << 20


def export_data(
    data: DataFrame,
    output: str,
    *,
    partitions: int | str | Sequence[int | str] | None = None,
    sort_by: Sequence[str] = (),
    checks: Sequence[str] | Checks = (),
    trim: bool = False,
    overwrite: bool = False,
    since: str = "",
) -> ExportReport:
    """Write a DataFrame as a record data set at ``output``, which ``read_records`` reads.

    Timestamps become microseconds in UTC, whatever the settings of the session are.

    Args:
        data: rows to export.
        output: folder to create, on a file system that this process sees.
        partitions: what Spark's ``repartition`` takes: a number of parts, columns whose equal values go to one part, so
            that Drey groups by them without an exchange, or both, the number first. Else parts are Spark's partitions.
        sort_by: columns by which each part is sorted. Where they begin with those of ``partitions``, parts are ranges,
            and the whole data set is in order: Drey does not sort it again.
        checks: SQL conditions; rows for which one is not true are set aside. Others by ``Checks``.
        trim: remove blanks at both ends of strings, as the script does with CSV.
        overwrite: replace an existing data set.
        since: a column of whole numbers, decimals, dates or timestamps that grows. Only rows beyond the largest value
            that is exported already are added to the data set; without a data set all are.

    Raises:
        PlanError: the output exists and ``overwrite`` is not set; a check that Spark does not understand.
        SchemaError: a column of a type that a record data set cannot hold.
    """
    started = time.monotonic()
    place = local_path(output, "export")
    if file_system_of(place) is not LOCAL:
        raise PlanError(
            f"export({place!r}): Spark exports to folders; its jars cannot write to object stores (s3a:// needs"
            " hadoop-aws, which PySpark does not have). Export to a folder, then"
            " env.read_records(folder).write_records(path)"
        )
    target = Path(LOCAL.folders.resolved(place))
    own = checks if isinstance(checks, Checks) else Checks(tuple(checks))
    with errors_of_spark():
        check_types(T.StructType([field for field in data.schema.fields if field.name not in MARKS]))
        is_taken = LOCAL.find(os.fspath(target)) is not None
        is_added = bool(since) and is_taken and not overwrite
        if is_taken and not overwrite and not since:
            raise PlanError(f"output {target} already exists; pass --overwrite to replace it")
        before = read_manifest(target) if is_added else None
        with column_settings(data.sparkSession, data.schema), nullable_parts(data) as rows:
            report = _exported(rows, target, own, (partitions, tuple(sort_by)), _How(trim, overwrite, since, before))
    return replace(report, seconds=time.monotonic() - started)


@dataclass(frozen=True)
class _How:
    """Options of an export. ``before``: the manifest of the data set to which rows are added."""

    trim: bool
    overwrite: bool
    since: str
    before: RecordsManifest | None


def _exported(
    data: DataFrame, target: Path, checks: Checks, spread: tuple[Any, tuple[str, ...]], how: _How
) -> ExportReport:
    beyond, there = "", None
    if how.since:
        checks = replace(checks, not_null=(*checks.not_null, how.since))
        data, beyond = _new_rows(data, how.since, how.before)
        there = _rows_of(data.sparkSession, target, how.before)
    marked = clean(data, checks, trim=how.trim, there=there)
    layout = _layout(*spread, marked.schema)
    with staging(target) as folder:
        rejected = folder / "rejected"
        made, report = _write_staging(marked, folder, target, layout, checks.names)
        if report.rejected is not None:
            write_rejected(marked, rejected, rejected_folder(target) if how.before is not None else None)
        if how.before is not None:
            beside = partial(publish_rejected, rejected, target) if report.rejected else None
            append(made, target, how.before, beside)
        else:
            publish(made, target, overwrite=how.overwrite)
            with target_lock(target):
                publish_rejected(rejected, target)
    if how.before is not None and not report.row_count:
        report = replace(report, file_count=0, size_bytes=0)
    return replace(report, since=beyond)


def _rows_of(spark: SparkSession, target: Path, manifest: RecordsManifest | None) -> DataFrame | None:
    """Return the rows that are exported already, None where there are none."""
    if manifest is None or not manifest.row_count:
        return None
    return spark.read.parquet(*(url_to_read(target / file.name) for file in manifest.files if file.rows))


def _new_rows(data: DataFrame, since: str, manifest: RecordsManifest | None) -> tuple[DataFrame, str]:
    """Return the rows beyond what is exported already, and that as text; rows without a value stay, to be set aside."""
    kinds = {field.name: field.dataType for field in data.schema.fields}
    if since not in kinds:
        raise PlanError(f"since: no column {since!r}. There are: {', '.join(data.columns)}")
    kind = kinds[since]
    if not isinstance(kind, T.IntegralType | T.DecimalType | T.DateType | T.TimestampType | T.TimestampNTZType):
        raise PlanError(f"since: column {since!r} is {kind.simpleString()}; whole numbers, decimals and times can grow")
    if manifest is None or not manifest.row_count:
        return data, ""
    known = manifest.columns.get(since)
    if known is None or known.max is None:
        raise PlanError(f"since: the data set does not say the largest value of {since!r}; export it with --overwrite")
    (column,) = columns_of([since])
    most = F.lit(str(known.max) if isinstance(known.max, str | date) else known.max).cast(kind)
    return data.where(column.isNull() | (column > most)), f"{since} > {known.max}"


@dataclass(frozen=True)
class _Layout:
    """The layout of an export: how rows are spread over parts, and sorted in them."""

    partitions: int | None
    partition_by: tuple[str, ...]
    sort_by: tuple[str, ...]
    schema: T.StructType

    def __post_init__(self) -> None:
        names = [name for name in self.schema.names if name not in MARKS]
        for what, wanted in (("partitions", self.partition_by), ("sort_by", self.sort_by)):
            for name in wanted:
                if name not in names:
                    raise PlanError(f"{what}: no column {name!r}. There are: {', '.join(names)}")

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """Columns by which parts are sorted as Drey sorts."""
        kept = []
        for name in self.sort_by:
            if not _is_compared_alike(self.schema[name].dataType):
                break
            kept.append(name)
        return tuple(kept)

    @property
    def partitioned_by(self) -> tuple[str, ...]:
        """Columns whose values, where Drey says that they are equal, are in one part."""
        are_alike = all(_is_compared_alike(self.schema[name].dataType) for name in self.partition_by)
        return self.partition_by if are_alike else ()

    def shaped(self, data: DataFrame) -> DataFrame:
        """Return the rows as they are to be written."""
        counts = (self.partitions,) if self.partitions else ()
        groups = columns_of(self.partition_by)
        if groups and self.sort_by[: len(groups)] == self.partition_by:
            data = data.repartitionByRange(*counts, *groups)
        elif groups:
            data = data.repartition(*counts, *groups)
        elif counts:
            data = data.repartition(*counts)
        return data.sortWithinPartitions(*columns_of(self.sort_by)) if self.sort_by else data


def _layout(
    partitions: int | str | Sequence[int | str] | None, sort_by: tuple[str, ...], schema: T.StructType
) -> _Layout:
    given = () if partitions is None else (partitions,) if isinstance(partitions, int | str) else tuple(partitions)
    count, names = (given[0], given[1:]) if given and isinstance(given[0], int) else (None, given)
    columns = tuple(name for name in names if isinstance(name, str))
    if len(columns) < len(names) or (count is not None and count < 1):
        raise PlanError(f"partitions: {given}; a number from 1, names of columns, or a number and then names")
    return _Layout(count, columns, sort_by, schema)


def _is_compared_alike(kind: T.DataType) -> bool:
    """Return whether Spark and Drey agree on the order and the equality of a type: not where NaN or a collation is."""
    is_text = isinstance(kind, T.StringType) and kind == T.StringType()
    plain = T.IntegralType | T.DecimalType | T.DateType | T.TimestampType | T.TimestampNTZType | T.BooleanType
    return is_text or isinstance(kind, plain | T.BinaryType)


def _write_staging(
    marked: DataFrame,
    staging: Path,
    target: Path,
    layout: _Layout,
    reasons: Sequence[str],
) -> tuple[Made, ExportReport]:
    bad = BadRows(marked, reasons) if REASON in marked.columns else None
    data_folder = staging / "data"
    _write_parquet(layout.shaped(bad.others if bad else marked), data_folder, is_whole=bool(layout.partition_by))
    by_reason = bad.counts() if bad else {}
    bad_rows = sum(by_reason.values())
    made = _finish_data_set(data_folder, bad_rows, layout)
    manifest = made.manifest
    return made, ExportReport(
        str(target),
        manifest.row_count,
        bad_rows,
        len(manifest.files),
        manifest.size_bytes,
        str(rejected_folder(target)) if bad_rows else None,
        by_reason,
        _heaviest(manifest),
        columns=exported_columns(manifest),
    )


def _heaviest(manifest: RecordsManifest) -> tuple[tuple[str, str, float], ...]:
    heavy = [(name, text, share) for name, column in manifest.columns.items() for text, share in column.heavy_keys]
    return tuple(sorted(heavy, key=lambda each: -each[2]))


def _write_parquet(data: DataFrame, folder: Path, *, is_whole: bool) -> None:
    """Write parts; whole: one for each of Spark's partitions, whatever the session says of large ones."""
    writer = data.write.option("compression", "lz4_raw").option("parquet.block.size", _ROW_GROUP_BYTES)
    if is_whole:
        # one file for each task: equal values stay together
        writer = writer.option("maxRecordsPerFile", 0)
    with file_settings(data.sparkSession):
        writer.parquet(f"file://{folder}")


def _finish_data_set(folder: Path, bad_rows: int, layout: _Layout) -> Made:
    """Write the manifest of the parts in a folder, and read the data set as any reader will."""
    paths = strip_names(folder, "parquet")
    # Spark writes a part where there are no rows, too
    stored: pa.Schema = pq.read_schema(paths[0]).remove_metadata()
    parts = written_parts(paths, plain_file_schema(stored))
    manifest = msgspec.structs.replace(
        merged_manifest(bytes(stored.serialize()), parts, "spark-export", bad_rows),
        sorted_by=layout.sorted_by,
        partitioned_by=layout.partitioned_by,
    )
    write_manifest(folder, manifest)
    records_source(folder)
    return Made(folder, stored, parts, manifest)
