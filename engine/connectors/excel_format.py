"""ExcelFormat, ExcelSink: what the engine knows of spreadsheets.

Held by: tests/connectors/test_excel.py
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar

from engine.errors import ConfigurationError
from engine.files.file_stamps import file_stamps
from engine.formats.sink_format import SinkFormat, SinkWriter
from engine.formats.source_format import FoundSource, ReadRequest, SourceFormat
from engine.graph.source_spec import FormatSource, SinkSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.connectors.excel_writer import ExcelWriter


class ExcelFormat(SourceFormat[FormatSource]):
    """Sheets, each read as a whole."""

    name = "excel"
    endings = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
    options: ClassVar = {
        "sheet": "name of the sheet, or its number from 1 on",
        "header": "whether the first row has the names of the columns",
        "skip_rows": "rows of the sheet that are passed over, before the header",
    }
    takes_schema = True
    reader_place = ("engine.connectors.excel_sheets", "ExcelReader")

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source of sheets."""
        from engine.connectors.excel_sheets import excel_source

        return excel_source(request.paths, request.schema, request.options)

    def stamps(self, spec: FormatSource) -> Hashable | None:
        """Return the versions of its files."""
        return file_stamps(spec.paths)

    def details(self, spec: FormatSource) -> list[str]:
        """Return the details of a source, and the cost of its cells."""
        return [*super().details(spec), "cells are objects of Python on their way; a file is read by one subtask"]


class ExcelSink(SinkFormat):
    """Workbooks of one sheet; ``options`` is its name."""

    name = "excel"
    extension = "xlsx"

    def checked(self, spec: SinkSpec, schema: pa.Schema, file_schema: pa.Schema) -> SinkSpec:
        """Return a sink of columns that Excel has."""
        from engine.connectors.excel_writer import check_excel_sink

        check_excel_sink(file_schema)
        if spec.is_single_file and not spec.path.lower().endswith(".xlsx"):
            raise ConfigurationError(f"write_excel({spec.path!r}): programs know the file by its ending; name it .xlsx")
        return super().checked(spec, schema, file_schema)

    def writer(self, spec: SinkSpec, schema: pa.Schema, path: str, former: SinkWriter | None = None) -> ExcelWriter:
        """Return the writer of a file."""
        from engine.connectors.excel_writer import ExcelWriter

        return ExcelWriter(schema, path, spec.options, header=spec.header)
