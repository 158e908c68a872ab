"""CsvFormat: what the engine knows of delimited text.

Held by: tests/formats/test_registry.py
"""

# ruff: noqa: PLC0415 - the JobManager loads this module, and no Arrow

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from engine.formats.source_format import FoundSource, ReadRequest, Rejects, SourceFormat
from engine.graph.source_spec import CsvSource, SourceSplit

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.formats.source_reader import SourceReader
    from engine.iomanager.spill_space import SpillSpace


class CsvFormat(SourceFormat[CsvSource]):
    """Splits that lie between records."""

    name = "csv"
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
