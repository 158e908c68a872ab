"""Names and types of CSV files without a schema, from how files begin; digits that are no number stay text.

    infer_file_schema(head, spec, dialect) -> (schema, rows it was inferred from, what is to be said of it)

Arrow infers, from the first megabyte and from the begin of other files, in each file by itself: a column has the type
that holds all that was found (int64 and double: double; else text). Two of Arrow's choices lose what was written, so
such a column is text instead, and the notes say so:

    007, 007.5       int64     leading zeros go        postal codes, account numbers, versions
    0x10             int64     it is 16                hashes, addresses
    2 ** 64, +49...  double    digits go               ids beyond int64, telephone numbers, ids beside a fraction

Blocks from all over the file are asked too: a column that is sorted has its zeros at one end.

Held by: tests/csv/test_source.py
"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.csv as pacsv

from engine.csv.dialect import CsvDialect
from engine.csv.encoding import to_utf8
from engine.csv.header import REST, column_names, renamed
from engine.csv.options import FALSE, TRUE
from engine.csv.parse import BlockParser, RaggedRows, as_arrow_takes, header_fields, split_fields
from engine.csv.sample import Block, Head, Layouts, file_begins, first_rows, spread_blocks
from engine.csv.scan import first_record_end, record_offsets
from engine.csv.written_dates import WrittenDates, fraction_type, has_mixed_offsets
from engine.csv.written_numbers import WrittenNumbers
from engine.errors import SchemaError
from engine.graph.source_spec import CsvSource
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.user_warnings import warn_user

_LOST_PREFIX = r"^\s*[+-]?0[0-9xX]"
_ONLY_DIGITS = "^[+-]?[0-9]+$"
_INT64_DIGITS = 19
#: limit up to which all integers are doubles
_EXACT_MAX = str(2**53)
#: records, and bytes of the head, by which it is seen whether a delimiter ends each line
_REST_RECORDS = 20
_REST_BYTES = 64 << 10
_ARROWS_ROW = re.compile(r"Row #([0-9]+)")


def header_names(head: bytes, dialect: CsvDialect, path: str, encoding: str = "") -> list[str]:
    """Return the names of columns by the first record; DataError where it has a quote that none closes."""
    return column_names(first_fields(head, dialect, path, encoding))


def first_fields(head: bytes, dialect: CsvDialect, path: str, encoding: str = "") -> list[str]:
    """Return the fields of the first record; DataError where it has a quote that none closes."""
    record = head[: first_record_end(head, dialect.delimiter, dialect.quote)]
    return header_fields(record, dialect, path, encoding)


def with_rest(schema: pa.Schema, head: bytes, dialect: CsvDialect, *, has_header: bool) -> pa.Schema:
    """Return the columns of a file, with REST where each of its first records ends with a delimiter behind the last."""
    offsets = record_offsets(head[:_REST_BYTES], dialect.delimiter, dialect.quote)
    records = [head[begin:end] for begin, end in pairwise(offsets[has_header:-1])] or [head[offsets[has_header] :]]
    fields = [split_fields(record, dialect) for record in records[:_REST_RECORDS] if record.strip()]
    if fields and all(len(each) == len(schema) + 1 and not each[-1] for each in fields):
        return schema.append(pa.field(REST, pa.string()))
    return schema


def infer_file_schema(
    head: Head, spec: CsvSource, dialect: CsvDialect, call: str = "read_csv"
) -> tuple[pa.Schema, int, str]:
    """Return (schema, rows it was inferred from, a note); without a header the names are column_0, column_1 ...

    Raises: SchemaError: no types can be inferred; DataError: a file has other columns.
    """
    if spec.infer_rows > 0:
        head = first_rows(spec, head)
    end = first_record_end(head.data, dialect.delimiter, dialect.quote)
    if spec.header:
        names, body = header_names(head.data, dialect, head.path, spec.encoding), head.data[end:]
    else:
        names, body = [f"column_{index}" for index in range(len(split_fields(head.data[:end], dialect)))], head.data
    texts = pa.schema([pa.field(name, pa.string()) for name in names])
    file_schema = with_rest(texts, head.data, dialect, has_header=spec.header)
    if spec.infer_rows == 0:
        return file_schema, 0, ""
    begins = file_begins(spec, head)
    layouts = Layouts(spec, file_schema)
    found = _Found(names, spec, call)
    if body.strip():
        lines_before = spec.skip_rows + (head.data.count(b"\n", 0, end) if spec.header else 0)
        found.add(inferred_table(body, file_schema.names, spec, dialect, lines_before))
    for block in begins:
        with contextlib.suppress(SchemaError):  # of what is malformed there the job tells
            found.add(inferred_table(block.data, layouts.of(block.path).names, spec, dialect))
    found.warn_of_mixed()
    schema = found.schema()
    blocks = [Block(head.path, body), *begins, *(spread_blocks(spec, head) if spec.infer_rows < 0 else ())]
    as_text = _digits(schema, spec, layouts, blocks)
    for name in as_text:
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
    note = f"text, since digits of numbers would be lost: {', '.join(as_text)}; " if as_text else ""
    if spec.header:
        note += _renamed(head, dialect, spec)
    schema = schema.append(file_schema.field(REST)) if REST in file_schema.names else schema
    return schema, found.row_count, note


def _renamed(head: Head, dialect: CsvDialect, spec: CsvSource) -> str:
    """Return a note of names that columns have and the header has not."""
    fields = first_fields(head.data, dialect, head.path, spec.encoding)
    found = renamed(fields, column_names(fields))
    return f"named {found}; " if found else ""


class _Found:
    """The types of columns that were found in some tables."""

    def __init__(self, names: Sequence[str], spec: CsvSource, call: str) -> None:
        self._types: dict[str, pa.DataType] = dict.fromkeys(names, pa.null())
        self._call = f"{call}({spec.paths[0]!r})"
        self._numbers = WrittenNumbers(spec.decimal, spec.thousands or None)
        self._dates = WrittenDates(spec.date_formats, spec.date_format)
        #: columns in which some timestamps have an offset and some have none
        self._mixed: dict[str, None] = {}
        self.row_count = 0

    def add(self, table: pa.Table) -> None:
        """Take in the columns of a table as Arrow has inferred them."""
        self.row_count += table.num_rows
        for name in self._types:
            column = table.column(name)
            data_type = self._type_of(name, column)
            if pa.types.is_string(data_type) and has_mixed_offsets(column):
                self._mixed[name] = None
            known = self._types[name]
            if (
                pa.types.is_timestamp(known)
                and pa.types.is_timestamp(data_type)
                and bool(known.tz) != bool(data_type.tz)
            ):
                self._mixed[name] = None
            self._types[name] = _common(known, data_type)

    def _type_of(self, name: str, column: pa.ChunkedArray) -> pa.DataType:
        if not pa.types.is_string(column.type):
            return column.type
        by_format = self._dates.inferred(name, column)
        if by_format is None and name in self._dates.names and column.null_count < len(column):
            self._refuse(name, column)
        return by_format or self._numbers.inferred(column) or fraction_type(column) or column.type

    def _refuse(self, name: str, column: pa.ChunkedArray) -> None:
        for text in column.drop_null():
            if self._dates.inferred(name, pa.chunked_array([pa.array([text.as_py()], pa.string())])) is None:
                raise SchemaError(
                    f"{self._call}: column {name!r}: {text.as_py()!r} is not of the format"
                    f" {self._dates.format_of(name)!r}"
                )

    def warn_of_mixed(self) -> None:
        """Tell of columns that are texts since some of their timestamps have an offset from UTC."""
        for name in self._mixed:
            warn_user(
                f"{self._call}: column {name!r} has timestamps with an offset from UTC and others without"
                " one, and is read as text; .str.to_timestamp(format, strict=False) makes timestamps of either kind"
            )

    def schema(self) -> pa.Schema:
        """Return the columns; those without a value are texts."""
        types = {name: pa.string() if pa.types.is_null(found) else found for name, found in self._types.items()}
        return pa.schema(list(types.items()))


def inferred_types(body: bytes, names: list[str], spec: CsvSource, dialect: CsvDialect) -> pa.Schema:
    """Return the types of records alone, with the dates and numbers that options describe. Raises: SchemaError."""
    found = _Found(names, spec, "read_csv")
    found.add(inferred_table(body, names, spec, dialect))
    return found.schema()


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type that a column has, of which files have either."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other) and one.tz == other.tz:
        return pa.timestamp(next(unit for unit in ("ns", "us", "s") if unit in (one.unit, other.unit)), one.tz)
    moments = [each for each in (one, other) if pa.types.is_timestamp(each) and each.tz is None]
    if moments and (pa.types.is_date32(one) or pa.types.is_date32(other)):
        return moments[0]
    return pa.string()


def inferred_table(
    body: bytes, names: list[str], spec: CsvSource, dialect: CsvDialect, lines_before: int = 0
) -> pa.Table:
    """Return records as a table of the types that Arrow infers; ``lines_before``: of the file, before the records."""
    parse_options = dialect.parse_options(len(names))
    if spec.on_bad_row == "skip":
        parse_options.invalid_row_handler = lambda _row: "skip"
    try:
        plain = to_utf8(body, spec.encoding) if spec.encoding else body
        text = bytes(as_arrow_takes(RaggedRows(spec, names, dialect).fitted(plain)))
        groups: dict[tuple[str, ...], list[str]] = {}
        for name in names:
            groups.setdefault(spec.column_nulls.get(name, spec.null_values), []).append(name)
        tables = [_inferred_by(text, names, some, nulls, spec, parse_options) for nulls, some in groups.items()]
        columns = {name: table.column(name) for table in tables for name in table.column_names}
        return pa.table([columns[name] for name in names], names=list(names))
    except UnicodeDecodeError as error:
        raise SchemaError(
            f"file {spec.paths[0]}: bytes {error.object[error.start : error.end]!r} are not {spec.encoding}; pass"
            " another encoding="
        ) from None
    except pa.ArrowInvalid as error:
        reason = _with_line(str(error).partition("\n")[0], body, dialect, lines_before)
        remedy = _remedy(names, body, reason, spec.ragged_rows)
        raise SchemaError(f"file {spec.paths[0]}: no schema can be inferred: {reason}; pass {remedy}") from None


def _inferred_by(
    text: bytes,
    names: Sequence[str],
    wanted: list[str],
    nulls: Sequence[str],
    spec: CsvSource,
    parse_options: pacsv.ParseOptions,
) -> pa.Table:
    """Return columns that have the same null values, of the types that Arrow infers; those with a format are texts.

    Timestamps with a fraction, of which Arrow makes nanoseconds, are of microseconds where these are enough.
    """

    def read(columns: list[str], texts: Iterable[str]) -> pa.Table:
        return pacsv.read_csv(
            pa.BufferReader(text),
            pacsv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=list(names)),
            parse_options,
            pacsv.ConvertOptions(
                column_types=dict.fromkeys(texts, pa.string()),
                include_columns=columns,
                null_values=list(nulls),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                decimal_point=spec.decimal,
                true_values=[*TRUE, *spec.true_values],
                false_values=[*FALSE, *spec.false_values],
            ),
        )

    table = read(wanted, spec.date_formats)
    fine = [field.name for field in table.schema if pa.types.is_timestamp(field.type) and field.type.unit == "ns"]
    for name, texts in zip(fine, read(fine, fine).columns if fine else (), strict=True):
        if (data_type := fraction_type(texts)) is not None:
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, pc.cast(table.column(place), data_type))
    return table


def _remedy(names: Sequence[str], body: bytes, reason: str, ragged_rows: str) -> str:
    """Return the option to pass: an encoding if characters are null, a delimiter if a single column holds one."""
    if b"\0" in body:
        return "encoding='utf-16-le' or 'utf-16-be', if it is in UTF-16, or schema="
    if names[0].startswith("#"):
        return "comment='#', if the first line is one, or schema="
    first = names[0] + body.partition(b"\n")[0].decode("latin-1") if len(names) == 1 else ""
    likely = [repr(one) for one in ";\t|," if one in first]
    if likely:
        return f"delimiter={likely[0]}, or schema="
    is_ragged = len(names) > 1 and "columns, got" in reason and ragged_rows != "fit"
    return "ragged_rows='fit', or on_bad_row='skip', for records of another length" if is_ragged else "schema="


def _with_line(reason: str, body: bytes, dialect: CsvDialect, lines_before: int) -> str:
    """Replace the row in Arrow's message, which counts records from 1, by the line of the file."""
    found = _ARROWS_ROW.search(reason)
    if found is None:
        return reason
    number = int(found[1])
    if dialect.quote >= 0 and dialect.quote in body:  # a record may have several lines
        place = f"record {number}{' behind the header' if lines_before else ''}"
    else:
        lines = enumerate(io.BytesIO(body), lines_before + 1)
        filled = (line for line, text in lines if text.strip(b"\r\n"))
        place = f"line {next(itertools.islice(filled, number - 1, None), number + lines_before)}"
    return reason.replace(found[0], place)


def _digits(schema: pa.Schema, spec: CsvSource, layouts: Layouts, blocks: Iterable[Block]) -> list[str]:
    """Return the columns of numbers that hold digits which a number does not keep."""
    numbers = [field.name for field in schema if pa.types.is_int64(field.type) or pa.types.is_float64(field.type)]
    if not numbers:
        return []
    parts: list[pa.Table] = []
    for block in blocks:
        parser = BlockParser(spec, layouts.of(block.path), numbers)
        try:
            parts.append(parser.parse(block.data))
        except pa.ArrowInvalid:
            parts += [part for part in parser.parse_around(memoryview(block.data)) if isinstance(part, pa.Table)]
    table = pa.concat_tables(parts)
    return [name for name in numbers if _loses_digits(table.column(name), schema.field(name).type)]


def _are_inexact(texts: pa.ChunkedArray, is_digits: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether whole numbers beside fractions are beyond those that a double keeps."""
    digits = pc.utf8_ltrim(texts, characters="+-")
    length, exact = pc.utf8_length(digits), scalar_of(len(_EXACT_MAX))
    is_more = pc.and_(pc.equal(length, exact), pc.greater(digits, scalar_of(_EXACT_MAX)))
    return pc.and_(is_digits, pc.or_(pc.greater(length, exact), is_more))


def _loses_digits(texts: pa.ChunkedArray, data_type: pa.DataType) -> bool:
    if pc.any(pc.match_substring_regex(texts, pattern=_LOST_PREFIX)).as_py():
        return True
    is_digits = pc.match_substring_regex(texts, pattern=_ONLY_DIGITS)
    if pa.types.is_float64(data_type):
        # Whole numbers alone: what made Arrow take fractions for them is that int64 has no room for one.
        return bool(pc.all(is_digits).as_py() or pc.any(_are_inexact(texts, is_digits)).as_py())
    longest = scalar_of(_INT64_DIGITS + 1)
    return bool(pc.any(pc.greater(pc.utf8_length(texts), longest)).as_py())
