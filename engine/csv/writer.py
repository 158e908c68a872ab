"""CsvWriter: batches as CSV text, by RFC 4180 with a newline as line end.

A null is nothing, an empty string is ``""``; other strings are quoted only when they hold the delimiter, a quote or a
line end, or begin the file as a mark of its encoding does (U+FEFF). Numbers are written so that they read back as the
same value, times as ISO 8601. Nested types have no text. ``CsvStyle`` has other forms of all of these.
"""

from __future__ import annotations

import codecs
import re

import pyarrow as pa

from engine.csv.row_format import FieldKind, Quoting, RowFormatter
from engine.csv.style import CsvStyle
from engine.errors import ConfigurationError, DataError, SchemaError
from engine.files.output_file import OutputFile
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.records.python_values import shown_value
from engine.records.stored_types import stored_type

_DELIMITERS_REFUSED = '"\n\r\0.+-:eE'
#: byte order marks of UTF-8 and of UTF-16
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: text of Arrow's cast in place of a timestamp
_EXCUSE = "<value out of range"
_NUMBERS = {
    pa.int8(): FieldKind.INT8,
    pa.int16(): FieldKind.INT16,
    pa.int32(): FieldKind.INT32,
    pa.int64(): FieldKind.INT64,
    pa.uint8(): FieldKind.UINT8,
    pa.uint16(): FieldKind.UINT16,
    pa.uint32(): FieldKind.UINT32,
    pa.uint64(): FieldKind.UINT64,
    pa.float64(): FieldKind.DOUBLE,
}


def check_csv_sink(schema: pa.Schema, delimiter: str) -> None:
    """Raise SchemaError for a column that has no text, ConfigurationError for a delimiter that cannot separate."""
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in _DELIMITERS_REFUSED or delimiter.isalnum():
        raise ConfigurationError(
            f"delimiter={delimiter!r}: must be one ASCII character that no number contains, no quote and no line end"
        )
    for field in schema:
        if not _is_text(field.type):
            try:
                if isinstance(field.type, pa.UuidType):
                    raise pa.ArrowInvalid("bytes that are no text")
                pc.cast(pa.nulls(0, stored_type(field.type)), pa.string())
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
                raise SchemaError(
                    f"write_csv: column {field.name!r} is {field.type}, which has no text form; drop or cast it"
                ) from None


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_binary(data_type))


def _as_text(column: pa.Array) -> pa.Array:
    data_type = column.type
    if _is_text(data_type):
        return column
    if pa.types.is_large_string(data_type):
        return pc.cast(column, pa.string())
    if pa.types.is_large_binary(data_type) or pa.types.is_fixed_size_binary(data_type):
        return pc.cast(column, pa.binary())
    if pa.types.is_null(data_type):
        return pa.nulls(len(column), pa.string())
    text = pc.cast(column, pa.string())
    if pa.types.is_date(data_type) or pa.types.is_timestamp(data_type):
        _check_moments(column, text)
    return text


def _check_moments(column: pa.Array, text: pa.Array) -> None:
    """Raise ValueError for a moment in place of whose text Arrow writes that there is none."""
    excuses = pc.starts_with(text, _EXCUSE)
    if pc.any(excuses).as_py():
        moment = column.filter(excuses)[0]
        raise ValueError(f"{shown_value(moment)!r} has no text, it is too far from 1970; cast it to an integer")


_PLAIN = CsvStyle()
#: size of a batch's text that means very wide rows
_LARGE_BYTES = 8 << 20


class CsvWriter:
    """Writes one CSV file."""

    is_full = False

    def __init__(
        self,
        schema: pa.Schema,
        path: str,
        header: bool = False,
        delimiter: str = ",",
        compression: str = "",
        style: CsvStyle = _PLAIN,
    ) -> None:
        check_csv_sink(schema, delimiter)
        self._delimiter = delimiter
        self._style = style
        self._null = style.null_text.encode()
        #: True for a text of nulls that may be that of a number, which then needs quotes as a text does
        self._is_null_numeric = any(map(str.isdigit, style.null_text))
        self._formatter = self._new_formatter(len(schema))
        self._quoting = [_quoting(style.quoting, field.type) for field in schema]
        self._text_columns: set[int] = set()
        self._row_count = 0
        self._is_begun = False
        self._encoder = codecs.getincrementalencoder(style.encoding)() if style.encoding else None
        self._file = OutputFile(path, compression)
        if header:
            fields = [(self._checked(name, pa.repeat(scalar_of(name), 1)), FieldKind.TEXT) for name in schema.names]
            self._put_rows(fields, 1, [_quoting(style.quoting, pa.string())] * len(schema))

    def _new_formatter(self, column_count: int) -> RowFormatter:
        return RowFormatter(column_count, ord(self._delimiter), ord(self._style.decimal), self._null)

    def _put_rows(self, columns: list[tuple[pa.Array, FieldKind]], row_count: int, quoting: list[Quoting]) -> None:
        while (view := self._formatter.format(columns, row_count, quoting)) is None:
            # Doubles beyond plain decimals: Arrow writes them, and those of the batches to come.
            index = self._formatter.refused_column
            self._text_columns.add(index)
            columns[index] = (self._numbers(columns[index][0]), FieldKind.TEXT)
        is_large = len(view) > _LARGE_BYTES
        view = view if self._is_begun else self._with_first_quoted(view)
        self._is_begun = self._is_begun or len(view) > 0
        self._file.write(view if self._encoder is None else self._encoded(view, columns))
        if is_large:
            # Very wide rows: the formatter's room for them is not kept.
            self._formatter = self._new_formatter(len(columns))

    def _encoded(self, view: memoryview, columns: list[tuple[pa.Array, FieldKind]]) -> memoryview:
        """Return text in the encoding of the file. Raises: DataError: it has not this character."""
        assert self._encoder is not None, "a file in UTF-8"
        try:
            return memoryview(self._encoder.encode(str(view, "utf-8")))
        except UnicodeEncodeError as error:
            wrong = error.object[error.start]
            said = f"{wrong!r} is not in {self._style.encoding}"
        except UnicodeDecodeError as error:
            said = f"{error.object[error.start : error.end]!r} is not UTF-8"
        raise DataError(f"write_csv: encoding={self._style.encoding!r}: {said}; replace it, or write UTF-8")

    def _with_first_quoted(self, view: memoryview) -> memoryview:
        """Return the first rows of a file, with their first field in quotes where a reader would take it for a mark."""
        if not bytes(view[:3]).startswith(_MARKS):
            return view
        # It is not quoted: it has neither the delimiter, nor a quote, nor a line end.
        ends = (place for place, byte in enumerate(view) if byte in (ord(self._delimiter), ord("\n")))
        end = next(ends, len(view))
        return memoryview(b'"%b"%b' % (bytes(view[:end]), bytes(view[end:])))

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        columns = []
        for index, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
            try:
                columns.append(self._field(name, column, index))
            except DataError:
                raise
            except ValueError as error:
                raise DataError(f"write_csv: column {name!r} is {column.type}: {error}") from None
        self._put_rows(columns, batch.num_rows, self._quoting)
        self._row_count += batch.num_rows

    def _field(self, name: str, column: pa.Array, index: int) -> tuple[pa.Array, FieldKind]:
        """Return a column in a form that the formatter takes: numbers as they are, everything else as text."""
        kind = _NUMBERS.get(column.type)
        if kind is not None and index not in self._text_columns and not self._is_null_numeric:
            return column, kind
        is_number = pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
        moments = self._style.moments(column)
        texts = moments if moments is not None else self._numbers(column) if is_number else _as_text(column)
        return self._checked(name, texts), FieldKind.TEXT

    def _numbers(self, column: pa.Array) -> pa.Array:
        texts = pc.cast(column, pa.string())
        return pc.replace_substring(texts, ".", self._style.decimal) if self._style.decimal != "." else texts

    def _checked(self, name: str, texts: pa.Array) -> pa.Array:
        """Return texts; where nothing is quoted, DataError for one that has to be."""
        if self._style.quoting != "none":
            return texts
        plain = pc.cast(texts, pa.binary()) if pa.types.is_binary(texts.type) else texts
        wrong = pc.or_(
            pc.match_substring_regex(plain, pattern=f"[{re.escape(self._delimiter)}\n\r]"),
            pc.equal(plain, scalar_of(self._null if pa.types.is_binary(texts.type) else self._style.null_text)),
        )
        if pc.any(wrong).as_py():
            shown = shown_value(texts.filter(wrong)[0])
            why = "it is the text of nulls" if shown == self._style.null_text else "it has the delimiter or a line end"
            raise DataError(
                f"write_csv: column {name!r}: {shown!r} needs quotes, since {why}; pass another quoting= than 'none',"
                " another delimiter=, or another null_text="
            )
        return texts

    def finish(self) -> tuple[int, int, str]:
        """Close the file; return (rows, bytes, "")."""
        self._file.close()
        return self._row_count, self._file.size_bytes, ""

    def abort(self) -> None:
        """Close and remove the file, unless it is finished."""
        self._file.abort()


def _quoting(quoting: str, data_type: pa.DataType) -> Quoting:
    """Return the rule for quotes around values of a type."""
    types = pa.types
    is_number = types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type)
    if quoting == "none":
        return Quoting.NEVER
    return Quoting.ALWAYS if quoting == "all" or (quoting == "non_numeric" and not is_number) else Quoting.MINIMAL
