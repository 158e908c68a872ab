"""``bin/spark-export``: Spark reads CSV, Parquet or JSON, cleans it, and writes a record data set.

    read ─► trim strings ─► rows that do not parse or fail a check are set aside, and counted
         ─► Parquet parts in a staging folder ─► manifest with statistics ─► one rename publishes the folder

Nothing appears under the output's name before everything is there. Rows set aside lie in ``<output>.rejected`` as
JSON lines with the reason. ``export_data`` does the same for a DataFrame that is at hand.

Source: the two-phase commit of Spark's own file committers, reduced to one rename.
"""

from __future__ import annotations

import argparse
import glob
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses
from pyspark.sql import types as T  # noqa: N812

from engine.connectors.records_manifest import RecordsFile, RecordsManifest, file_crc32, footer_crc32, write_manifest
from engine.errors import ConfigurationError, EngineError, PlanError
from engine.spark.statistics import heavy_keys, manifest_columns, observed_metrics

_LOG_SETTINGS = Path(__file__).resolve().parents[2] / "conf" / "spark-log4j2.properties"
_CORRUPT = "__drey_corrupt"
_REASON = "__drey_reason"
#: what Spark's parser puts for an unquoted empty field; with its default, "", a quoted empty string were null, too
_NULL_TEXT = "\x00null"
#: row groups are what Drey's subtasks read: small enough that shares come out even
_ROW_GROUP_BYTES = 8 << 20


@dataclass(frozen=True)
class ExportReport:
    """What an export did."""

    output: str
    row_count: int
    bad_row_count: int
    file_count: int
    size_bytes: int
    rejected: str | None


def start_spark(name: str) -> SparkSession:
    """Return a session for this machine; an existing one is used as it is.

    What the JVM says while it starts goes to a file that is shown only when it does not start.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.appName(name)
        .master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{_LOG_SETTINGS}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
    )
    with tempfile.TemporaryFile() as said:
        own_stderr = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            return builder.getOrCreate()
        except Exception:
            said.seek(0)
            os.write(own_stderr, said.read())
            raise
        finally:
            os.dup2(own_stderr, 2)
            os.close(own_stderr)


def read_input(spark: SparkSession, source: str, file_format: str, options: argparse.Namespace) -> DataFrame:
    """Return the input as it stands; CSV and JSON rows that do not parse carry their text in a marker column."""
    if not glob.glob(source):  # noqa: PTH207 - patterns with any number of folders, relative or absolute
        raise PlanError(f"no such input: {source}")
    if file_format == "parquet":
        return spark.read.parquet(source)
    reader = spark.read.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", _CORRUPT)
    if file_format == "json":
        schema = T._parse_datatype_string(options.schema) if options.schema else reader.json(source).schema
        return reader.schema(_with_marker(schema)).json(source)
    reader = (
        reader.option("header", str(options.header).lower())
        .option("sep", options.delimiter)
        .option("quote", '"')
        .option("escape", '"')
        .option("nullValue", _NULL_TEXT)
        .option("emptyValue", "")
        .option("multiLine", str(options.multi_line).lower())
        .option("enforceSchema", "true")
    )
    if options.schema:
        schema = T._parse_datatype_string(options.schema)
    else:
        schema = reader.option("inferSchema", "true").csv(source).schema
    return reader.schema(_with_marker(schema)).csv(source)


def _with_marker(schema: T.DataType) -> T.StructType:
    assert isinstance(schema, T.StructType)
    kept = [field for field in schema.fields if field.name != _CORRUPT]
    return T.StructType([*kept, T.StructField(_CORRUPT, T.StringType())])


def clean(data: DataFrame, checks: Sequence[str], *, trim: bool) -> DataFrame:
    """Return the data trimmed, with a column that is null for good rows and says why for the others."""
    reason = F.lit(None).cast("string")
    for check in reversed(checks):
        holds = F.coalesce(F.expr(check), F.lit(False))
        reason = F.when(~holds, F.lit(f"check failed: {check}")).otherwise(reason)
    columns = []
    for field in data.schema.fields:
        if field.name == _CORRUPT:
            continue
        column = F.col(f"`{field.name}`")
        columns.append(F.trim(column).alias(field.name) if trim and field.dataType == T.StringType() else column)
    if _CORRUPT in data.columns:
        marker = F.col(_CORRUPT)
        return (
            data.select(*columns, marker)
            .withColumn(
                _REASON, F.when(marker.isNotNull(), F.concat(F.lit("does not parse: "), marker)).otherwise(reason)
            )
            .drop(_CORRUPT)
        )
    return data.select(*columns).withColumn(_REASON, reason)


def export_data(
    data: DataFrame,
    output: str,
    *,
    partitions: int | None = None,
    sort_by: Sequence[str] = (),
    checks: Sequence[str] = (),
    trim: bool = True,
    overwrite: bool = False,
) -> ExportReport:
    """Clean a DataFrame and write it as a record data set at ``output``.

    Args:
        data: rows to export.
        output: folder to create, on a file system that this process sees.
        partitions: number of Parquet parts; Spark's own number where it is None.
        sort_by: columns by which each part is sorted.
        checks: SQL conditions; rows for which one is not true are set aside.
        trim: take blanks off both ends of strings.
        overwrite: replace an existing data set.

    Raises:
        PlanError: the output exists and ``overwrite`` is not set.
    """
    target = _local_path(output)
    rejected = target.with_name(f"{target.name}.rejected")
    if target.exists() and not overwrite:
        raise PlanError(f"output {target} already exists; pass --overwrite to replace it")
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = target.with_name(f".{target.name}.drey-{uuid.uuid4().hex}")
    try:
        marked = clean(data, checks, trim=trim)
        report = _write_staging(marked, staging, rejected, target, partitions, tuple(sort_by))
        _publish(staging / "data", target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return report


def _local_path(output: str) -> Path:
    if "://" in output and not output.startswith("file://"):
        raise ConfigurationError(f"{output}: only folders of this machine can be written so far")
    return Path(output.removeprefix("file://")).resolve()


def _write_staging(
    marked: DataFrame, staging: Path, rejected: Path, target: Path, partitions: int | None, sort_by: tuple[str, ...]
) -> ExportReport:
    bad_count = Observation("bad")
    observed = Observation("columns")
    schema = T.StructType([field for field in marked.schema.fields if field.name != _REASON])
    counted = marked.observe(bad_count, F.count(F.when(F.col(_REASON).isNotNull(), 1)).alias("bad"))
    good = counted.where(F.col(_REASON).isNull()).drop(_REASON).observe(observed, *observed_metrics(schema))
    shaped = good.repartition(partitions) if partitions else good
    if sort_by:
        shaped = shaped.sortWithinPartitions(*sort_by)
    data_folder = staging / "data"
    shaped.write.option("compression", "lz4_raw").option("parquet.block.size", _ROW_GROUP_BYTES).parquet(
        str(data_folder)
    )
    bad_rows = int(bad_count.get["bad"])
    if bad_rows:
        shutil.rmtree(rejected, ignore_errors=True)
        bad = marked.where(F.col(_REASON).isNotNull()).withColumnRenamed(_REASON, "reason")
        bad.coalesce(1).write.json(str(staging / "rejected"))
        _strip(staging / "rejected", "json")
        (staging / "rejected").rename(rejected)
    names = _strip(data_folder, "parquet")
    files = tuple(_records_file(data_folder / name) for name in names)
    heavy = heavy_keys(marked.sparkSession.read.parquet(str(data_folder)), schema) if files else {}
    schema_ipc = _arrow_schema_ipc(marked, schema, data_folder, names)
    columns = manifest_columns(schema, dict(observed.get), heavy)
    manifest = RecordsManifest(
        schema_ipc,
        files,
        sum(file.rows for file in files),
        sum(file.bytes for file in files),
        columns,
        producer="spark-export",
        bad_rows=bad_rows,
    )
    write_manifest(data_folder, manifest)
    rejected_path = str(rejected) if bad_rows else None
    return ExportReport(str(target), manifest.row_count, bad_rows, len(files), manifest.size_bytes, rejected_path)


def _records_file(path: Path) -> RecordsFile:
    rows, size = pq.read_metadata(path).num_rows, path.stat().st_size
    return RecordsFile(path.name, rows, size, file_crc32(path), footer_crc32(path))


def _arrow_schema_ipc(marked: DataFrame, schema: T.StructType, folder: Path, names: Sequence[str]) -> bytes:
    if names:
        arrow_schema = pq.read_schema(folder / names[0])
        return bytes(arrow_schema.remove_metadata().serialize())
    empty = marked.sparkSession.createDataFrame([], schema).toArrow()
    return bytes(empty.schema.remove_metadata().serialize())


def _strip(folder: Path, ending: str) -> list[str]:
    """Give Spark's files plain names and remove everything else; return the names in order."""
    parts = sorted(path for path in folder.iterdir() if path.name.startswith("part-") and path.suffix == f".{ending}")
    names = [f"part-{position:05d}.{ending}" for position in range(len(parts))]
    for path, name in zip(parts, names, strict=True):
        path.rename(folder / name)
    for path in folder.iterdir():
        if path.name not in names:
            path.unlink()
    return names


def _publish(data_folder: Path, target: Path) -> None:
    if target.exists():
        old = target.with_name(f".{target.name}.drey-old-{uuid.uuid4().hex}")
        target.rename(old)
        data_folder.rename(target)
        shutil.rmtree(old)
    else:
        data_folder.rename(target)


def build_parser() -> argparse.ArgumentParser:
    """Return the command line of ``spark-export``."""
    parser = argparse.ArgumentParser(prog="spark-export", description="Clean data with Spark and export it for Drey.")
    parser.add_argument("--input", required=True, metavar="PATH", help="file, folder or glob to read")
    parser.add_argument("--format", choices=("csv", "parquet", "json"), required=True, help="format of the input")
    parser.add_argument("--output", required=True, metavar="DIR", help="record data set to create")
    parser.add_argument("--schema", metavar="DDL", help="columns and types, such as 'id BIGINT, name STRING'")
    parser.add_argument("--header", action="store_true", help="CSV: the first line names the columns")
    parser.add_argument("--delimiter", default=",", help="CSV: field separator (default ,)")
    parser.add_argument("--multi-line", action="store_true", help="CSV: quoted fields may hold line breaks")
    parser.add_argument("--partitions", type=int, metavar="N", help="number of Parquet parts")
    parser.add_argument("--sort-by", default="", metavar="COLUMN,...", help="sort each part by these columns")
    parser.add_argument(
        "--check", action="append", default=[], metavar="SQL", help="condition every row must satisfy; may be repeated"
    )
    parser.add_argument("--no-trim", action="store_true", help="keep blanks at both ends of strings")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    parser.add_argument("--quiet", action="store_true", help="say nothing unless something went wrong")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an export and say what it did; 0 done, 1 failed."""
    options = build_parser().parse_args(arguments)
    try:
        spark = start_spark("drey spark-export")
        data = read_input(spark, options.input, options.format, options)
        report = export_data(
            data,
            options.output,
            partitions=options.partitions,
            sort_by=[name for name in options.sort_by.split(",") if name],
            checks=options.check,
            trim=not options.no_trim,
            overwrite=options.overwrite,
        )
    except EngineError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    if not options.quiet:
        size = f"{report.file_count} files ({report.size_bytes:,} bytes)"
        print(f"exported {report.row_count:,} rows in {size} to {report.output}")
    if report.bad_row_count:
        print(f"{report.bad_row_count:,} bad rows were set aside in {report.rejected}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
