"""Names and types of a CSV file without a schema, from the first megabyte; digits that are no number stay text.

    infer_file_schema(head, spec, dialect) -> (schema, rows it was inferred from, what is to be said of it)

Arrow infers. Two of its choices lose what was written, so such a column is text instead, and the notes say so:

    007, 0123        int64     leading zeros go        postal codes, account numbers
    0x10             int64     it is 16                hashes, addresses
    2 ** 64, +49...  double    digits go               ids beyond int64, telephone numbers, ids beside a fraction

Blocks from all over the file are asked too: a column that is sorted has its zeros at one end.

Held by: tests/csv/test_source.py
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.csv as pacsv

from engine.csv.dialect import CsvDialect
from engine.csv.encoding import to_utf8
from engine.csv.parse import BlockParser, header_fields, split_fields
from engine.csv.scan import first_record_end
from engine.csv.written_numbers import WrittenNumbers
from engine.errors import SchemaError
from engine.graph.source_spec import CsvSource
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_LOST_PREFIX = "^[+-]?0([0-9]+|[xX][0-9a-fA-F]+)$"
_ONLY_DIGITS = "^[+-]?[0-9]+$"
_INT64_DIGITS = 19
#: all whole numbers up to this one are doubles
_EXACT_MAX = str(2**53)
_ARROWS_ROW = re.compile(r"Row #([0-9]+)")


def header_names(head: bytes, dialect: CsvDialect, path: str, encoding: str = "") -> list[str]:
    """Return the fields of the first record; DataError where it has a quote that none closes."""
    record = head[: first_record_end(head, dialect.delimiter, dialect.quote)]
    return header_fields(record, dialect, path, encoding)


def infer_file_schema(
    head: bytes, spec: CsvSource, dialect: CsvDialect, more: Iterable[bytes] = ()
) -> tuple[pa.Schema, int, str]:
    """Return (schema, rows it was inferred from, a note); without a header the names are column_0, column_1 ...

    ``more``: blocks of whole records from elsewhere, asked for digits that are no number.
    """
    end = first_record_end(head, dialect.delimiter, dialect.quote)
    if spec.header:
        names, body = header_names(head, dialect, spec.paths[0], spec.encoding), head[end:]
    else:
        names, body = [f"column_{index}" for index in range(len(split_fields(head[:end], dialect)))], head
    if len(set(names)) < len(names) or not all(names):
        raise SchemaError(f"file {spec.paths[0]}: names of the header are empty or repeated: {', '.join(names)}")
    if not body.strip():
        return pa.schema([pa.field(name, pa.string()) for name in names]), 0, ""
    table = inferred_table(body, names, spec, dialect, head.count(b"\n", 0, end) if spec.header else 0)
    numbers = WrittenNumbers(spec.decimal, spec.thousands or None)
    schema = pa.schema([field.with_type(_type_of(table.column(field.name), numbers)) for field in table.schema])
    as_text = _digits(schema, spec, [body, *more])
    for name in as_text:
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
    note = f"text, since digits of numbers would be lost: {', '.join(as_text)}; " if as_text else ""
    return schema, table.num_rows, note


def _type_of(column: pa.ChunkedArray, numbers: WrittenNumbers) -> pa.DataType:
    if pa.types.is_null(column.type):
        return pa.string()
    return (numbers.inferred(column) if pa.types.is_string(column.type) else None) or column.type


def inferred_table(
    body: bytes, names: list[str], spec: CsvSource, dialect: CsvDialect, lines_before: int = 0
) -> pa.Table:
    """Return records as a table of the types that Arrow infers; ``lines_before``: of the file, before the records."""
    parse_options = dialect.parse_options(len(names))
    if spec.on_bad_row == "skip":
        parse_options.invalid_row_handler = lambda _row: "skip"
    try:
        text = to_utf8(body, spec.encoding) if spec.encoding else body
        return pacsv.read_csv(
            pa.BufferReader(text),
            pacsv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
            parse_options,
            pacsv.ConvertOptions(
                null_values=list(spec.null_values),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                decimal_point=spec.decimal,
                # 1 and 0 beside them are no truths
                true_values=["true", "True", "TRUE"],
                false_values=["false", "False", "FALSE"],
            ),
        )
    except UnicodeDecodeError as error:
        raise SchemaError(
            f"file {spec.paths[0]}: bytes {error.object[error.start : error.end]!r} are not {spec.encoding}; pass"
            " another encoding="
        ) from None
    except pa.ArrowInvalid as error:
        reason = _with_line(str(error).partition("\n")[0], body, dialect, lines_before)
        remedy = _remedy(names, body)
        raise SchemaError(f"file {spec.paths[0]}: no schema can be inferred: {reason}; pass {remedy}") from None


def _remedy(names: Sequence[str], body: bytes) -> str:
    """Return what to pass: a delimiter where the one column of the header, or of the first line, holds what is one."""
    first = names[0] + body.partition(b"\n")[0].decode("latin-1") if len(names) == 1 else ""
    likely = [repr(one) for one in ";\t|," if one in first]
    return f"delimiter={likely[0]}, or schema=" if likely else "schema="


def _with_line(reason: str, body: bytes, dialect: CsvDialect, lines_before: int) -> str:
    """Return what Arrow says of a record, which it calls a row and counts from 1, with the line of the file."""
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


def _digits(schema: pa.Schema, spec: CsvSource, blocks: Iterable[bytes]) -> list[str]:
    """Return the columns of numbers that hold digits which a number does not keep."""
    numbers = [field.name for field in schema if pa.types.is_int64(field.type) or pa.types.is_float64(field.type)]
    if not numbers:
        return []
    texts = pa.schema([pa.field(field.name, pa.string()) for field in schema])
    parser = BlockParser(spec, texts, numbers)
    parts: list[pa.Table] = []
    for block in blocks:
        try:
            parts.append(parser.parse(block))
        except pa.ArrowInvalid:
            parts += [part for part in parser.parse_around(memoryview(block)) if isinstance(part, pa.Table)]
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
