"""The client's side of a CSV source: files, schema, statistics.

    csv_source(path, schema=None, options=CsvOptions(...)) -> (CsvSource, SourceStatistics, pa.Schema)

With a schema and no header, columns are the schema's, by position. With both, the header says where each column of
the schema is; columns of the file that the schema does not name are not read. Without a schema types are inferred
from a sample, and the origin of the statistics says so (explain prints it).

The splits are provisional: ``splits.exact_splits`` moves them to record boundaries before the job runs.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pyarrow as pa

from engine.csv.advice import warn_of_mistakes
from engine.csv.dialect import CsvDialect
from engine.csv.encoding import checked_encoding, refuse_utf16
from engine.csv.inference import header_names, infer_file_schema
from engine.csv.options import CsvOptions
from engine.csv.parse import BlockParser, other_delimiter
from engine.csv.sample import csv_statistics, first_head, sample_blocks
from engine.csv.splits import provisional_splits
from engine.errors import SchemaError
from engine.files.compression import check_named, checked_codec
from engine.files.paths import PathLike, expand_paths, local_path
from engine.graph.source_spec import CsvSource, SourceStatistics

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
    head = first_head(paths, dialect, codec)
    refuse_utf16(head, paths[0])
    spec = CsvSource(
        paths=paths,
        splits=provisional_splits(paths, parallelism, codec),
        file_schema_ipc=b"",
        columns=(),
        header=options.header,
        delimiter=options.delimiter,
        quote=options.quote or "",
        null_values=tuple(options.null_values),
        on_bad_row=options.on_bad_row,
        encoding=checked_encoding(options.encoding, options.delimiter, options.quote),
        bad_rows_path="" if options.bad_rows_path is None else local_path(options.bad_rows_path, "bad_rows_path"),
        compression=codec,
        decimal=options.decimal,
        thousands=options.thousands or "",
    )
    is_inferred = schema is None
    note = ""
    if schema is None:
        if not head:
            raise SchemaError(f"read_csv({paths[0]!r}): the file is empty and there is no schema; pass schema=")
        file_schema, row_count, why = infer_file_schema(head, spec, dialect, sample_blocks(spec, head))
        schema = file_schema
        note = f"schema inferred from {row_count} rows: {_schema_text(schema)}; {why}"
    else:
        schema = _plain(schema)
        names = header_names(head, dialect, paths[0], spec.encoding) if options.header and head else []
        file_schema = _by_header(schema, names, paths[0]) if names else schema
    spec = msgspec.structs.replace(
        spec, file_schema_ipc=file_schema.serialize().to_pybytes(), columns=tuple(schema.names)
    )
    _check_types(spec, file_schema)
    if head:
        warn_of_mistakes(spec, head, file_schema, dialect, is_inferred=is_inferred)
    return spec, csv_statistics(spec, head, file_schema, note), schema


def _schema_text(schema: pa.Schema) -> str:
    """Return names and types in one line of bounded length."""
    text = ", ".join(f"{field.name} {field.type}" for field in schema)
    return text if len(text) <= _SCHEMA_TEXT_MAX else f"{text[:_SCHEMA_TEXT_MAX]}..."


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return the schema with nullable fields and no metadata; CSV cannot promise that a field is there."""
    if not isinstance(schema, pa.Schema):
        raise SchemaError(f"schema= must be a pyarrow.Schema, not {type(schema).__name__}")
    if not schema.names or len(set(schema.names)) < len(schema.names):
        raise SchemaError(f"schema= has no columns or one twice: {', '.join(schema.names)}")
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _by_header(schema: pa.Schema, names: list[str], path: str) -> pa.Schema:
    """Return the schema of the file: its header's names with the types that are given."""
    missing = [name for name in schema.names if name not in names]
    if missing:
        other = other_delimiter(names) if len(names) == 1 else ""
        advice = f"; pass delimiter={other!r} if that parts them" if other else ""
        raise SchemaError(f"file {path}: the header has no {', '.join(missing)}; it has {', '.join(names)}{advice}")
    if len(set(names)) < len(names):
        raise SchemaError(f"file {path}: names of the header are repeated: {', '.join(names)}")
    return pa.schema([schema.field(name) if name in schema.names else pa.field(name, pa.string()) for name in names])


def _check_types(spec: CsvSource, schema: pa.Schema) -> None:
    """Raise SchemaError for a type that text cannot be read as."""
    null = spec.null_values[0] if spec.null_values else ""
    for field in schema:
        parser = BlockParser(spec, pa.schema([field]), [field.name])
        try:
            parser.parse(null.encode() + b"\n")
        except pa.ArrowNotImplementedError:
            raise SchemaError(f"read_csv: column {field.name!r} cannot be read as {field.type} from text") from None
        except pa.ArrowInvalid:
            continue
