"""``bin/spark-export``: what is read, how it is checked, and what is said of it.

    --input FILES --format F | --table NAME | --sql QUERY ─► clean, check ─► record data set ─► report
                                                                                            ─► --submit JOB.py

Held by: tests/spark/test_export_checks.py
Held by: tests/spark/test_export.py
"""

from __future__ import annotations

import argparse
import glob
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the usual name

from engine.errors import EngineError, PlanError
from engine.python_command import python_command
from engine.spark.column_names import listed_names
from engine.spark.export import export_data
from engine.spark.export_checks import CORRUPT, SOURCE, Checks
from engine.spark.export_report import check_report_path
from engine.spark.exportable import BY_CASE
from engine.spark.failures import errors_of_spark, first_line
from engine.spark.file_urls import is_left_out
from engine.spark.session import open_session
from engine.spark.session_settings import with_settings

#: text that Spark's parser reads an unquoted empty field as; with its default, "", a quoted one would be null, too
_NULL_TEXT = "\x00null"


def read_input(spark: SparkSession, options: argparse.Namespace) -> DataFrame:
    """Return the input as it stands, and as marks the text of rows that do not parse, and the file of each."""
    data = None
    if options.table:
        with _option("--table"):
            data = spark.table(options.table)
    elif options.input:
        # else Spark renames columns of a header, or refuses those of objects, that differ by case alone
        with with_settings(spark, BY_CASE):
            data = _read_files(spark, options.input, options.format, options)
            if not options.sql:
                data = data.withColumn(SOURCE, data.metadataColumn("_metadata")["file_path"])
    if options.sql:
        with _option("--sql"):
            if data is not None:
                data.createOrReplaceTempView("input")
            data = spark.sql(options.sql)
            data.schema  # noqa: B018 - has a server of Spark Connect look at it
    assert data is not None, "no input"
    return data


@contextmanager
def _option(name: str) -> Iterator[None]:
    """Add to an error the option that Spark does not understand."""
    try:
        yield
    except AnalysisException as error:
        raise PlanError(f"{name}: {first_line(error)}") from None


def _schema(text: str) -> T.DataType:
    with _option("--schema"):
        return T._parse_datatype_string(text)


def _read_files(spark: SparkSession, source: str, file_format: str, options: argparse.Namespace) -> DataFrame:
    found = glob.glob(source)  # noqa: PTH207 - patterns with any number of folders, relative or absolute
    if not found:
        raise PlanError(f"no such input: {source}")
    if all(Path(path).is_file() and is_left_out(path) for path in found):
        raise PlanError(f"input {source}: Spark leaves out files whose names begin with _ or . (rename {found[0]})")
    if file_format == "parquet":
        return spark.read.parquet(source)
    reader = spark.read.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    if file_format == "json":
        schema = _schema(options.schema) if options.schema else reader.json(source).schema
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
    schema = _schema(options.schema) if options.schema else reader.option("inferSchema", "true").csv(source).schema
    return reader.schema(_with_marker(schema)).csv(source)


def _with_marker(schema: T.DataType) -> T.StructType:
    assert isinstance(schema, T.StructType)
    kept = [field for field in schema.fields if field.name != CORRUPT]
    return T.StructType([*kept, T.StructField(CORRUPT, T.StringType())])


def build_parser() -> argparse.ArgumentParser:
    """Return the command line of ``spark-export``."""
    parser = argparse.ArgumentParser(prog="spark-export", description="Clean data with Spark and export it for Drey.")
    parser.add_argument("--input", metavar="PATH", help="file, folder or glob to read")
    parser.add_argument("--format", choices=("csv", "parquet", "json"), help="format of the input")
    parser.add_argument("--table", metavar="NAME", help="table of Spark's catalog to read, in place of --input")
    parser.add_argument("--sql", metavar="QUERY", help="query to export; --input is the table named input in it")
    parser.add_argument("--output", required=True, metavar="DIR", help="record data set to create")
    parser.add_argument("--schema", metavar="DDL", help="columns and types, such as 'id BIGINT, name STRING'")
    parser.add_argument("--header", action="store_true", help="CSV: the first line names the columns")
    parser.add_argument("--delimiter", default=",", help="CSV: field separator (default ,)")
    parser.add_argument("--multi-line", action="store_true", help="CSV: quoted fields may hold line breaks")
    parser.add_argument("--partitions", type=int, metavar="N", help="number of Parquet parts")
    parser.add_argument(
        "--partition-by", default="", metavar="COLUMN,...", help="columns whose equal values go to one part"
    )
    parser.add_argument(
        "--sort-by",
        default="",
        metavar="COLUMN,...",
        help="sort each part by these columns; all rows where they begin with those of --partition-by",
    )
    parser.add_argument(
        "--check", action="append", default=[], metavar="SQL", help="condition every row must satisfy; may be repeated"
    )
    parser.add_argument("--not-null", default="", metavar="COLUMN,...", help="columns that must have a value")
    parser.add_argument(
        "--unique", action="append", default=[], metavar="COLUMN,...", help="columns that are a key; may be repeated"
    )
    parser.add_argument(
        "--references",
        action="append",
        default=[],
        metavar="COLUMN=PATH:COLUMN",
        help="column whose values must be in a column of another data set; may be repeated",
    )
    parser.add_argument(
        "--since", default="", metavar="COLUMN", help="add rows beyond the largest that is there already"
    )
    parser.add_argument("--report", metavar="FILE", help="write what was done as JSON (.json) or as a page (.html)")
    parser.add_argument(
        "--trim",
        action=argparse.BooleanOptionalAction,
        help="remove blanks at both ends of strings (default: only for CSV)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    parser.add_argument("--quiet", action="store_true", help="print nothing unless something goes wrong")
    parser.add_argument(
        "--submit",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="then run flink-run job submit with what follows, as in --submit -t cluster JOB.py; the last option",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an export and say what it did; 0 done, 1 failed."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if sum(map(bool, (options.input, options.table))) != 1 and not (options.sql and not options.table):
        parser.error("give one of --input and --table, or --sql")
    if options.input and not options.format:
        parser.error("--input needs --format csv, parquet or json")
    if options.submit is not None and not options.submit:
        parser.error("--submit needs a script, as in --submit -t cluster JOB.py")
    script = next((each for each in options.submit or () if each.endswith(".py")), None)
    if script is not None and not Path(script).is_file():
        parser.error(f"--submit: no such script: {script}")  # before the export, which may take hours
    try:
        report_path = check_report_path(options.report) if options.report else None
        spark = open_session("drey spark-export")
        groups = listed_names("--partition-by", options.partition_by)
        with errors_of_spark():
            data = read_input(spark, options)
        report = export_data(
            data,
            options.output,
            partitions=groups if options.partitions is None else (options.partitions, *groups),
            sort_by=listed_names("--sort-by", options.sort_by),
            checks=Checks(
                options.check,
                listed_names("--not-null", options.not_null),
                [listed_names("--unique", each) for each in options.unique],
                options.references,
            ),
            trim=options.format == "csv" if options.trim is None else options.trim,
            overwrite=options.overwrite,
            since=options.since,
        )
        if report_path is not None:
            report.save(report_path)
    except (EngineError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    for line in report.lines():
        if not options.quiet or "set aside" in line:
            print(line)
    return _submit(options.submit) if options.submit else 0


def _submit(arguments: Sequence[str]) -> int:
    """Submit to the target of the arguments; return the job's exit code."""
    return subprocess.run(python_command("engine.cli.main", "job", "submit", *arguments), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
