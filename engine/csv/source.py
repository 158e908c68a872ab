"""The client's side of a CSV source: files, schema, statistics.

    csv_source(path, schema=None, options=CsvOptions(...)) -> (CsvSource, SourceStatistics, pa.Schema)

With a schema and no header, columns are the schema's, by position. With both, the header says where each column of
the schema is; columns of the file that the schema does not name are not read. Without a schema types are inferred
from a sample, and the origin of the statistics says so (explain prints it). Where a delimiter ends every line, behind
the last column, there is nothing behind it and no column (``header.REST``).

The splits are provisional: ``splits.exact_splits`` moves them to record boundaries before the job runs.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pyarrow as pa

from engine.csv.advice import warn_of_mistakes
from engine.csv.dialect import CsvDialect
from engine.csv.encoding import Encoding, checked_encoding, marked_encoding
from engine.csv.header import REST, listed
from engine.csv.inference import header_names, infer_file_schema, with_rest
from engine.csv.options import CsvOptions
from engine.csv.parse import BlockParser, other_delimiter
from engine.csv.sample import csv_statistics, first_head
from engine.csv.splits import provisional_splits
from engine.errors import SchemaError
from engine.files.compression import check_named, checked_codec, stored_as
from engine.files.paths import PathLike, expand_paths, local_folder
from engine.graph.source_spec import CsvSource, SourceStatistics
from engine.records.plain_types import plain_schema

_DEFAULTS = CsvOptions()
_SCHEMA_TEXT_MAX = 300


def csv_source(
    path: PathLike | Iterable[PathLike],
    schema: pa.Schema | None = None,
    options: CsvOptions = _DEFAULTS,
    parallelism: int = 1,
) -> tuple[CsvSource, SourceStatistics, pa.Schema]:
    """Return a CSV source, what is known of its size, and its schema.

    Raises: PlanError (no such file), SchemaError (types or header), ConfigurationError (options), DataError (a header
        that does not end).
    """
    dialect = CsvDialect.of(options.delimiter, options.quote)
    codec = checked_codec(options.compression, "read_csv")
    paths = expand_paths(path, "read_csv")
    check_named(paths, codec, "read_csv")
    spec = _spec_of(paths, codec, options)
    spec = msgspec.structs.replace(spec, splits=provisional_splits(paths, parallelism, spec.compression))
    head = first_head(spec)
    is_inferred = schema is None
    note = ""
    if schema is None:
        if not head.data:
            begin = f" behind {spec.skip_rows} skipped lines" if spec.skip_rows else ""
            raise SchemaError(f"read_csv({paths[0]!r}): the file is empty{begin} and there is no schema; pass schema=")
        file_schema, row_count, why = infer_file_schema(head, spec, dialect)
        schema = pa.schema([field for field in file_schema if field.name != REST])
        note = f"schema inferred from {row_count} rows: {_schema_text(schema)}; {why}"
    else:
        schema = _plain(schema)
        fields = header_names(head.data, dialect, head.path, spec.encoding) if options.header and head.data else []
        file_schema = _by_header(schema, fields, head.path) if fields else schema
        file_schema = with_rest(file_schema, head.data, dialect, has_header=bool(fields))
        spec = msgspec.structs.replace(spec, named=tuple(schema.names) if fields else ())
    spec = msgspec.structs.replace(
        spec, file_schema_ipc=file_schema.serialize().to_pybytes(), columns=tuple(schema.names)
    )
    _check_columns(spec, schema)
    _check_types(spec, schema)
    if head.data:
        warn_of_mistakes(spec, head.data, schema, dialect, is_inferred=is_inferred)
    return spec, csv_statistics(spec, head, file_schema, note), schema


def _spec_of(paths: tuple[str, ...], codec: str, options: CsvOptions) -> CsvSource:
    """Return a source of files with what the user says of them, without columns."""
    encoding = checked_encoding(options.encoding, options.delimiter, options.quote)
    if options.encoding is None and (marked := marked_encoding(paths, codec)):
        encoding = Encoding(marked, is_stream=True)
    return CsvSource(
        paths=paths,
        splits=(),
        file_schema_ipc=b"",
        columns=(),
        header=options.header,
        delimiter=options.delimiter,
        quote=options.quote or "",
        null_values=options.nulls_of_all(),
        on_bad_row=options.on_bad_row,
        encoding="" if encoding.is_stream else encoding.name,
        bad_rows_path="" if options.bad_rows_path is None else local_folder(options.bad_rows_path, "bad_rows_path"),
        compression=stored_as(codec, encoding.name if encoding.is_stream else ""),
        decimal=options.decimal,
        thousands=options.thousands or "",
        skip_rows=options.skip_rows,
        comment=options.comment or "",
        column_nulls=options.nulls_by_column(),
        date_formats=options.formats_by_column(),
        date_format=options.format_of_all(),
        true_values=options.truths()[0],
        false_values=options.truths()[1],
        ragged_rows=options.ragged_rows,
        infer_rows=-1 if options.infer_rows is None else options.infer_rows,
    )


def _schema_text(schema: pa.Schema) -> str:
    """Return names and types in one line of bounded length."""
    text = ", ".join(f"{field.name} {field.type}" for field in schema)
    return text if len(text) <= _SCHEMA_TEXT_MAX else f"{text[:_SCHEMA_TEXT_MAX]}..."


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return the schema, plain and nullable, without metadata; CSV cannot promise that a field is there."""
    if not isinstance(schema, pa.Schema):
        raise SchemaError(f"schema= must be a pyarrow.Schema, not {type(schema).__name__}")
    if not schema.names or len(set(schema.names)) < len(schema.names):
        raise SchemaError(f"schema= has no columns or one twice: {', '.join(schema.names)}")
    return plain_schema(pa.schema([pa.field(field.name, field.type) for field in schema]))


def _by_header(schema: pa.Schema, names: list[str], path: str) -> pa.Schema:
    """Return the schema of the file: its header's names with the types that are given."""
    known, there = {field.name: field for field in schema}, set(names)
    missing = [name for name in known if name not in there]
    if missing:
        other = other_delimiter(names) if len(names) == 1 else ""
        advice = f"; pass delimiter={other!r} if that parts them" if other else ""
        raise SchemaError(f"file {path}: the header has no {listed(missing)}; it has {listed(names)}{advice}")
    return pa.schema([known.get(name) or pa.field(name, pa.string()) for name in names])


def _check_columns(spec: CsvSource, schema: pa.Schema) -> None:
    """Raise SchemaError for an option of a column that is not there, or has no use of it."""
    for option, names in (("null_values", spec.column_nulls), ("date_format", spec.date_formats)):
        unknown = next((name for name in names if name not in schema.names), None)
        if unknown is not None:
            raise SchemaError(f"read_csv: {option}= names {unknown!r}; the columns are {', '.join(schema.names)}")
    for name in spec.date_formats:
        data_type = schema.field(name).type
        if not (pa.types.is_date(data_type) or pa.types.is_timestamp(data_type) or pa.types.is_time(data_type)):
            raise SchemaError(
                f"read_csv: date_format= has a format for {name!r}, which is {data_type} and neither a date nor a time"
            )


def _check_types(spec: CsvSource, schema: pa.Schema) -> None:
    """Raise SchemaError for a type that text cannot be read as."""
    null = spec.null_values[0] if spec.null_values else ""
    alike = {(field.type, field.name if field.name in spec.date_formats else ""): field for field in schema}
    for field in alike.values():
        parser = BlockParser(spec, pa.schema([field]), [field.name])
        try:
            parser.parse(null.encode() + b"\n")
        except pa.ArrowNotImplementedError:
            raise SchemaError(
                f"read_csv: column {field.name!r} cannot be read as {field.type} from text; read it as string, and go "
                "on with cast or .str.json_parse"
            ) from None
        except pa.ArrowInvalid:
            continue
