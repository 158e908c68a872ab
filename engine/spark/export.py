"""``bin/spark-export``: Spark reads CSV, Parquet or JSON, cleans it, and writes a record data set.

    read ─► trim strings ─► rows that do not parse or fail a check are set aside, and counted
         ─► Parquet parts in a staging folder, in one pass over the DataFrame
         ─► the parts are read back by the engine's own kernels: manifest with statistics and checksums
         ─► the engine opens the data set as ``read_records`` will ─► one rename publishes the folder

Nothing appears under the output's name before everything is there and can be read. Rows that
were set aside are in ``<output>.rejected``, as JSON lines with the reason; only where there are any, the DataFrame is
computed a second time. ``export_data`` does the same for any DataFrame.

Cost: that of ``df.write.parquet`` and about a tenth more; Spark never counts, caches or groups for the statistics.

Source: the two-phase commit of Spark's own file committers, reduced to one rename.
"""

from __future__ import annotations

import argparse
import glob
import logging
import os
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as T  # noqa: N812

from engine.config.home import conf_folder, delivered
from engine.connectors.records_manifest import write_manifest
from engine.connectors.records_parts import merged_manifest
from engine.connectors.records_source import records_source
from engine.connectors.records_writer import written_parts
from engine.errors import ConfigurationError, EngineError, PlanError
from engine.parquet.source import plain_file_schema
from engine.spark.exportable import check_types, file_settings

_LOG_SETTINGS = "spark-log4j2.properties"
_CORRUPT = "__drey_corrupt"
_UNKNOWN_COLUMN = re.compile(r"^\[UNRESOLVED_COLUMN.*? with name (`.+?`) cannot be resolved")
_SPARKS_CODES = re.compile(r"^\[[A-Z_.0-9]+\] | SQLSTATE: \w+")
_REASON = "__drey_reason"
#: what Spark's parser reads an unquoted empty field as; with its default, "", a quoted one would be null, too
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

    Output of the JVM while it starts goes to a file that is shown only when it does not start.

    Raises:
        ConfigurationError: there is no Java.
    """
    home = os.environ.get("JAVA_HOME")
    if SparkSession.getActiveSession() is None and shutil.which(f"{home}/bin/java" if home else "java") is None:
        where = f"JAVA_HOME is {home}, where there is no bin/java" if home else "there is no java on the PATH"
        raise ConfigurationError(f"Spark needs Java 17 or 21, and {where}; install one, or set JAVA_HOME to it")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Python workers of Spark have the packages of this process.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    own = conf_folder() / _LOG_SETTINGS
    log_settings = own.absolute() if own.is_file() else delivered("conf", _LOG_SETTINGS)
    builder = (
        SparkSession.builder.appName(name)
        .master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{log_settings}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
    )
    with tempfile.TemporaryFile() as said:
        own_stderr = os.dup(2)
        os.dup2(said.fileno(), 2)
        # The JVM's Python workers shall not look for modules in the current folder.
        is_chosen = "PYTHONSAFEPATH" in os.environ
        os.environ.setdefault("PYTHONSAFEPATH", "1")
        try:
            return builder.getOrCreate()
        except Exception:
            said.seek(0)
            os.write(own_stderr, said.read())
            raise
        finally:
            if not is_chosen:
                del os.environ["PYTHONSAFEPATH"]
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
    """Return the data trimmed; where rows can be bad, with a column that says why, and is null for good ones.

    Raises:
        PlanError: a check that Spark does not understand.
    """
    fields = [field for field in data.schema.fields if field.name != _CORRUPT]
    columns = [_column(field.name) for field in fields]
    if trim:
        columns = [
            F.trim(column).alias(field.name) if isinstance(field.dataType, T.StringType) else column
            for field, column in zip(fields, columns, strict=True)
        ]
    marker = [F.col(_CORRUPT)] if _CORRUPT in data.columns else []
    if not marker and not checks:
        return data.select(*columns) if trim else data
    cleaned = data.select(*columns, *marker)
    reason = F.lit(None).cast("string")
    for check in reversed(checks):
        _try_check(cleaned, check)
        holds = F.coalesce(F.expr(check), F.lit(False))
        reason = F.when(~holds, F.lit(f"check failed: {check}")).otherwise(reason)
    if not marker:
        return cleaned.withColumn(_REASON, reason)
    does_not_parse = F.concat(F.lit("does not parse: "), marker[0])
    return cleaned.withColumn(_REASON, F.when(marker[0].isNotNull(), does_not_parse).otherwise(reason)).drop(_CORRUPT)


def _column(name: str) -> Column:
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")


def _try_check(data: DataFrame, check: str) -> None:
    """Raise PlanError where a check is no condition on the columns."""
    try:
        data.where(check).schema  # noqa: B018 - has Spark look at it
    except AnalysisException as error:
        raise PlanError(f"check {check!r}: {_why(error, data)}") from None


def _why(error: AnalysisException, data: DataFrame) -> str:
    """Return why Spark does not understand a condition; in our words where a column does not exist."""
    line = _first_line(error)
    unknown = _UNKNOWN_COLUMN.search(line)
    if unknown is None:
        return _SPARKS_CODES.sub("", line).strip()
    names = [name for name in data.columns if name != _CORRUPT]
    return f"no column {unknown[1].replace('`', '')!r}. There are: {', '.join(names)}"


def _first_line(error: AnalysisException) -> str:
    return str(error).strip().partition("\n")[0]


def export_data(
    data: DataFrame,
    output: str,
    *,
    partitions: int | None = None,
    sort_by: Sequence[str] = (),
    checks: Sequence[str] = (),
    trim: bool = False,
    overwrite: bool = False,
) -> ExportReport:
    """Write a DataFrame as a record data set at ``output``, which ``read_records`` reads.

    Timestamps become microseconds in UTC, whatever the settings of the session are.

    Args:
        data: rows to export.
        output: folder to create, on a file system that this process sees.
        partitions: number of Parquet parts; Spark's own number where it is None.
        sort_by: columns by which each part is sorted.
        checks: SQL conditions; rows for which one is not true are set aside.
        trim: remove blanks at both ends of strings, as the script does with CSV.
        overwrite: replace an existing data set.

    Raises:
        PlanError: the output exists and ``overwrite`` is not set; a check that Spark does not understand.
        SchemaError: a column of a type that a record data set cannot hold.
    """
    target = _local_path(output)
    check_types(T.StructType([field for field in data.schema.fields if field.name != _CORRUPT]))
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
    shaped, bad_count = marked, None
    if _REASON in marked.columns:
        bad_count = Observation("bad")
        is_bad = F.col(_REASON).isNotNull()
        shaped = marked.observe(bad_count, F.count(F.when(is_bad, 1)).alias("bad")).where(~is_bad).drop(_REASON)
    if partitions:
        shaped = shaped.repartition(partitions)
    if sort_by:
        shaped = shaped.sortWithinPartitions(*sort_by)
    data_folder = staging / "data"
    _write_parquet(shaped, data_folder)
    bad_rows = int(bad_count.get["bad"]) if bad_count is not None else 0
    if bad_rows:
        _write_rejected(marked, staging / "rejected", rejected)
    row_count, file_count, size_bytes = _finish_data_set(data_folder, bad_rows)
    rejected_path = str(rejected) if bad_rows else None
    return ExportReport(str(target), row_count, bad_rows, file_count, size_bytes, rejected_path)


def _write_parquet(data: DataFrame, folder: Path) -> None:
    writer = data.write.option("compression", "lz4_raw").option("parquet.block.size", _ROW_GROUP_BYTES)
    with file_settings(data.sparkSession):
        try:
            writer.parquet(f"file://{folder}")
        except AnalysisException as error:
            raise PlanError(f"export: {_first_line(error)}") from error


def _write_rejected(marked: DataFrame, folder: Path, rejected: Path) -> None:
    shutil.rmtree(rejected, ignore_errors=True)
    bad = marked.where(F.col(_REASON).isNotNull()).withColumnRenamed(_REASON, "reason")
    bad.coalesce(1).write.json(f"file://{folder}")
    _strip(folder, "json")
    folder.rename(rejected)


def _finish_data_set(folder: Path, bad_rows: int) -> tuple[int, int, int]:
    """Write the manifest of the parts in a folder and read the data set as any reader will; (rows, files, bytes)."""
    paths = [folder / name for name in _strip(folder, "parquet")]
    # Spark writes a part where there are no rows, too
    stored: pa.Schema = pq.read_schema(paths[0]).remove_metadata()
    parts = written_parts(paths, plain_file_schema(stored))
    manifest = merged_manifest(bytes(stored.serialize()), parts, "spark-export", bad_rows)
    write_manifest(folder, manifest)
    records_source(folder)
    return manifest.row_count, len(manifest.files), manifest.size_bytes


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
    parser.add_argument(
        "--trim",
        action=argparse.BooleanOptionalAction,
        help="remove blanks at both ends of strings (default: only for CSV)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    parser.add_argument("--quiet", action="store_true", help="print nothing unless something goes wrong")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an export and say what it did; 0 done, 1 failed."""
    options = build_parser().parse_args(arguments)
    try:
        # what is wrong is in the exceptions; PySpark logs it too, as JSON with the JVM's stack
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        spark = start_spark("drey spark-export")
        data = read_input(spark, options.input, options.format, options)
        report = export_data(
            data,
            options.output,
            partitions=options.partitions,
            sort_by=[name for name in options.sort_by.split(",") if name],
            checks=options.check,
            trim=options.format == "csv" if options.trim is None else options.trim,
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
