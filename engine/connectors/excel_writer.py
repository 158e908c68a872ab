"""ExcelWriter: batches as a sheet of Excel, by xlsxwriter (the extra ``excel``), row by row.

Numbers, truths, dates and times are what they are in Excel, all else is text; a null is an empty cell, as an empty text
is. Excel has doubles alone, milliseconds, no zones, and no day before 1900: a whole number or a decimal that a double
does not keep, a day before, and a double that is no number fail the job. Cells are objects of Python, as the library
takes them; the rows that were written are not kept in memory.

Held by: tests/connectors/test_excel.py
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from engine.errors import ConfigurationError, DataError, SchemaError
from engine.files.output_file import OutputFile
from engine.records.stored_types import stored

_ROWS_MAX: Final = 1 << 20
_COLUMNS_MAX: Final = 1 << 14
_TEXT_MAX: Final = 32_767
_SHOWN_MAX: Final = 80
_EXACT_MAX: Final = 2**53
_FIRST_DAY: Final = dt.date(1900, 1, 1)
_FORMATS: Final = {"date": "yyyy-mm-dd", "moment": "yyyy-mm-dd hh:mm:ss", "time": "hh:mm:ss", "duration": "[h]:mm:ss"}


def _library() -> Any:
    try:
        import xlsxwriter
    except ImportError:
        raise ConfigurationError(
            "write_excel without the package xlsxwriter; install it: pip install 'drey-engine[excel]'"
        ) from None
    return xlsxwriter


def check_excel_sink(schema: pa.Schema) -> None:
    """Raise SchemaError for columns that Excel has not, ConfigurationError without the library."""
    _library()
    if len(schema) > _COLUMNS_MAX:
        raise SchemaError(f"write_excel: {len(schema)} columns; a sheet has {_COLUMNS_MAX:,} at most")
    for field in schema:
        if pa.types.is_timestamp(field.type) and field.type.tz:
            raise SchemaError(
                f"write_excel: column {field.name!r} is {field.type}, and Excel has no time zones; drop the zone with"
                " .dt.with_timezone(None), or cast it to string"
            )
        if _kind(field.type) == "":
            raise SchemaError(
                f"write_excel: column {field.name!r} is {field.type}, which Excel has not; drop or cast it"
            )


def _kind(data_type: pa.DataType) -> str:
    types = pa.types
    kinds: tuple[tuple[str, Callable[[Any], bool]], ...] = (
        ("bool", types.is_boolean),
        ("number", types.is_integer),
        ("number", types.is_floating),
        ("number", types.is_decimal),
        ("date", types.is_date),
        ("moment", types.is_timestamp),
        ("time", types.is_time),
        ("duration", types.is_duration),
        ("text", types.is_string),
        ("text", types.is_large_string),
        ("null", types.is_null),
    )
    return next((kind for kind, is_of in kinds if is_of(data_type)), "")


class _Bytes:
    """The file of a workbook, to which the archive is written from its begin to its end."""

    def __init__(self, file: OutputFile) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        self._file.write(memoryview(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""


class _Exact(float):
    """A number that is written with all of its digits; the library asks for sixteen."""

    def __format__(self, _: str) -> str:
        return repr(float(self))


class ExcelWriter:
    """Writes one file with one sheet."""

    is_full = False

    def __init__(self, schema: pa.Schema, path: str, sheet: str, *, header: bool) -> None:
        check_excel_sink(schema)
        self._file = OutputFile(path)
        options = {"constant_memory": True, "default_date_format": _FORMATS["moment"]}
        self._book = _library().Workbook(_Bytes(self._file), options)
        try:
            self._sheet = self._book.add_worksheet(sheet)
        except _library().exceptions.XlsxWriterException as error:
            self._file.abort()
            raise SchemaError(f"write_excel: sheet={sheet!r}: {error}") from None
        self._formats = {kind: self._book.add_format({"num_format": form}) for kind, form in _FORMATS.items()}
        self._kinds = [_kind(field.type) for field in schema]
        self._row = 0
        if header:
            for index, name in enumerate(schema.names):
                self._sheet.write_string(0, index, name)
            self._row = 1
        self._first = self._row

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if self._row + batch.num_rows > _ROWS_MAX:
            raise DataError(
                f"write_excel: more than {_ROWS_MAX:,} rows, which is all that a sheet has; write CSV or Parquet"
            )
        columns = [stored(column).to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            for index, value in enumerate(row):
                if value is not None:
                    self._put(index, value, batch.schema.names[index])
            self._row += 1

    def _put(self, index: int, value: Any, name: str) -> None:
        kind = self._kinds[index]
        why = _refusal(kind, value)
        if why:
            raise DataError(f"write_excel: column {name!r}: {_shown(value)} {why}; cast it to string")
        if kind == "text":
            self._sheet.write_string(self._row, index, value)
        elif kind == "number":
            self._sheet.write_number(self._row, index, value if isinstance(value, int) else _Exact(value))
        elif kind == "bool":
            self._sheet.write_boolean(self._row, index, value)
        else:
            self._sheet.write_datetime(self._row, index, value, self._formats[kind])

    def finish(self) -> tuple[int, int, str]:
        """Complete the file; return (rows, bytes, "")."""
        self._book.close()
        self._file.close()
        return self._row - self._first, self._file.size_bytes, ""

    def abort(self) -> None:
        """Close and remove the file, unless it is finished."""
        self._file.abort()


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def _refusal(kind: str, value: Any) -> str:
    """Return the reason for which Excel does not keep a value, "" for none."""
    if kind == "text":
        return f"has more than the {_TEXT_MAX:,} characters of a cell" if len(value) > _TEXT_MAX else ""
    if kind == "number":
        if isinstance(value, int):
            return "" if abs(value) <= _EXACT_MAX else "has more digits than a number of Excel"
        if isinstance(value, Decimal):
            return "" if Decimal(repr(float(value))) == value else "has more digits than a number of Excel"
        return "" if value - value == 0 else "is no number of Excel"
    if kind in ("date", "moment"):
        day = value.date() if isinstance(value, dt.datetime) else value
        return "is before 1900, where Excel's days begin" if day < _FIRST_DAY else ""
    return ""
