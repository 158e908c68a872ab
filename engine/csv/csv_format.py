"""CsvFormat, CsvSink: what the engine knows of delimited text.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar

from engine.errors import SchemaError
from engine.files.file_stamps import file_stamps
from engine.formats.sink_format import SinkFormat, SinkWriter, with_written_codec
from engine.formats.source_format import FoundSource, ReadRequest, Rejects, SourceFormat
from engine.graph.source_spec import CsvSource, SinkSpec, SourceSplit

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.csv.writer import CsvWriter
    from engine.formats.source_reader import SourceReader
    from engine.iomanager.spill_space import SpillSpace


class CsvFormat(SourceFormat[CsvSource]):
    """Splits that lie between records."""

    name = "csv"
    endings = (".csv",)
    options: ClassVar = {
        "header": "whether the first line has the names of the columns",
        "delimiter": "what stands between fields",
        "quote": "what stands around fields; None: quotes mean nothing",
        "null_values": "texts that are null, of all columns or by column",
        "on_bad_row": "what becomes of a malformed record: fail, or skip",
        "bad_rows_path": "folder of CSV that keeps the records that are left out",
        "encoding": "Python's name of the encoding; UTF-8 without it",
        "compression": "gzip, zstd, bz2, xz, lz4 or none, where the ending of a file does not say it",
        "decimal": "what stands before fractions",
        "thousands": "what stands between groups of three digits",
        "skip_rows": "lines of each file that are passed over, before the header",
        "comment": "what lines begin with that are left out",
        "true_values": "texts that are true, beside true, True and TRUE",
        "false_values": "texts that are false, beside false, False and FALSE",
        "ragged_rows": "what becomes of records with other numbers of fields: fail, fill, cut, or fit (both)",
        "infer_rows": "first rows from which types are inferred; 0: all columns are texts",
        "date_format": "format of dates and times, of all columns or by column",
    }
    takes_schema = True

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of records."""
        from engine.csv.options import CsvOptions
        from engine.csv.source import csv_source

        return csv_source(request.paths, request.schema, CsvOptions(**request.options), request.parallelism)

    def exact_splits(self, spec: CsvSource, subtask_count: int) -> CsvSource:
        """Return a source with splits between records."""
        from engine.csv.splits import exact_splits

        return exact_splits(spec, subtask_count)

    def stamps(self, spec: CsvSource) -> Hashable | None:
        """Return the versions of its files."""
        return file_stamps(spec.paths)

    def rejects(self, spec: CsvSource, size_bytes: float) -> Rejects | None:
        """Return the malformed records, where a folder keeps them."""
        if not spec.bad_rows_path:
            return None
        from engine.csv.rejects import REJECTS, rejects_source

        return Rejects(spec.bad_rows_path, *rejects_source(spec, size_bytes), REJECTS)

    def sample_rows(self, spec: CsvSource, columns: Sequence[str]) -> pa.Table:
        """Return records of blocks from everywhere."""
        import pyarrow as pa

        from engine.csv.sample import csv_sample, first_head

        schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
        return pa.concat_tables(csv_sample(spec, first_head(spec), schema, columns).tables)

    def reader(
        self, spec: CsvSource, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
    ) -> SourceReader:
        """Return the reader of records, or of those that are malformed."""
        if spec.is_rejects:
            from engine.csv.rejects import CsvRejects

            return CsvRejects(spec, splits)
        from engine.csv.reader import CsvReader

        return CsvReader(spec, splits)


class CsvSink(SinkFormat):
    """Delimited text, with or without a header."""

    name = "csv"
    is_compressed_whole = True

    def checked(self, spec: SinkSpec, schema: pa.Schema, file_schema: pa.Schema) -> SinkSpec:
        """Return a sink of columns that have a text form."""
        from engine.csv.writer import check_csv_sink

        check_csv_sink(schema, spec.delimiter)
        return with_written_codec(spec)

    def found_schema(self, spec: SinkSpec, file: str) -> pa.Schema:
        """Return the types that the texts of a file look like."""
        from engine.csv.options import CsvOptions
        from engine.csv.source import csv_source
        from engine.csv.style import style_of

        style = style_of(spec)
        options = CsvOptions(
            header=spec.header,
            delimiter=spec.delimiter,
            null_values=style.null_text,
            decimal=style.decimal,
            date_format=style.timestamp_format or style.date_format or None,
            encoding=style.encoding or None,
        )
        return csv_source(file, options=options)[2]

    def fits(self, known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
        """Return whether texts of a type are read together with those that are there; False: each text says so."""
        from engine.csv.added_rows import fits

        return fits(known, own, schema_mode)

    def is_by_place(self, spec: SinkSpec) -> bool:
        """Return whether there is no header."""
        return not spec.header

    def check_added(self, spec: SinkSpec, schema: pa.Schema, file: str, what: str) -> None:
        """Raise ConfigurationError for a file with another header, decimal mark or text for nulls."""
        from engine.csv.added_rows import check_decimal, check_header, check_null_text

        check_header(spec, schema, file, what)
        what = f"{what}: what is there ({file})"
        check_decimal(spec, schema, what, lambda sink: self.found_schema(sink, file))
        check_null_text(spec, schema, file, what)

    def check_columns(self, spec: SinkSpec, there: pa.Schema, schema: pa.Schema, what: str) -> str:
        """Raise SchemaError for rows with more or fewer fields than the file that is there."""
        if len(there) != len(schema):
            names = ", ".join(schema.names)
            raise SchemaError(f"{what} has {len(there)} columns, these rows have {len(schema)}: {names}")
        return ""

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> CsvWriter:
        """Return the writer of a file."""
        from engine.csv.style import style_of
        from engine.csv.writer import CsvWriter

        return CsvWriter(schema, path, spec.header, spec.delimiter, spec.compression, style_of(spec))
