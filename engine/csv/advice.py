"""Advice about CSV files that look wrong when a plan is built, for the author of the program; nothing is changed.

    one column, and every line has as many ";"         the delimiter is another one
    a first row of names above columns of numbers      header=True was forgotten
    columns of bytes                                   the file is not UTF-8, encoding= was forgotten
    numbers that are text because of empty fields      null_values= has other texts, "" was forgotten

Each is a warning that begins with the call and says what to pass. A file that is as it seems costs a look at a few
lines; types are inferred a second time only below a row that looks like names.
"""

from __future__ import annotations

import re
from itertools import islice

import msgspec
import pyarrow as pa

from engine.csv.dialect import CsvDialect
from engine.csv.encoding import guessed_encoding
from engine.csv.header import column_names, renamed
from engine.csv.inference import first_fields, inferred_types
from engine.csv.parse import other_delimiter
from engine.csv.scan import first_record_end
from engine.errors import DataError, SchemaError
from engine.graph.source_spec import CsvSource
from engine.user_warnings import warn_user

_LINES = 20
_TEXT_MAX = 120
_NAME = re.compile(r"[^\W\d][\w .()/#%-]{0,62}")
# fmt: off
#: usual names of columns, by which a header above texts is recognized
_USUAL = frozenset(
    {
        "id", "key", "code", "name", "title", "value", "type", "kind", "status", "date", "time", "timestamp",
        "year", "month", "day", "amount", "price", "quantity", "count", "total", "currency", "country", "city",
        "address", "street", "email", "phone", "user", "description", "category", "first_name", "last_name",
    }
)
# fmt: on


def warn_of_mistakes(
    spec: CsvSource, head: bytes, schema: pa.Schema, dialect: CsvDialect, *, is_inferred: bool
) -> None:
    """Warn of what is likely a mistake in how a file is read; ``schema`` is that of the whole file."""
    call = f"read_csv({spec.paths[0]!r})"
    if is_inferred:
        other = _other_delimiter(head, schema, spec)
        if other:
            warn_user(
                f"{call}: one column was found ({schema.names[0]}), while {other!r} parts every line into as many;"
                f" pass delimiter={other!r}"
            )
            return
        _warn_of_bytes(spec, head, schema, call)
        _warn_of_empty(spec, head, schema, dialect, call)
    if spec.header:
        _warn_of_names(spec, head, dialect, call)
    elif _is_header(spec, head, schema, dialect, is_inferred=is_inferred):
        names = ", ".join(first_fields(head, dialect, spec.paths[0], spec.encoding))
        warn_user(
            f"{call}: the first row looks like names ({_shortened(names)}) and is read as a row; pass header=True if it"
            " is a header"
        )


def _warn_of_names(spec: CsvSource, head: bytes, dialect: CsvDialect, call: str) -> None:
    """Tell of names that the header has more than once."""
    fields = first_fields(head, dialect, spec.paths[0], spec.encoding)
    named = [field for field in fields if field]
    if len(set(named)) < len(named):
        warn_user(f"{call}: the header has names twice, and columns are called {renamed(fields, column_names(fields))}")


def _lines(head: bytes, spec: CsvSource) -> list[str]:
    text = head[: 1 << 16].decode(spec.encoding or "utf-8", errors="replace")
    lines = text.splitlines()
    return [line for line in islice(lines, _LINES) if line.strip()]


def _other_delimiter(head: bytes, schema: pa.Schema, spec: CsvSource) -> str:
    if len(schema) != 1:
        return ""
    lines = _lines(head, spec)
    return other_delimiter(lines) if len(lines) > 1 else ""


def _warn_of_bytes(spec: CsvSource, head: bytes, schema: pa.Schema, call: str) -> None:
    names = [field.name for field in schema if pa.types.is_binary(field.type)]
    try:
        head.decode(spec.encoding or "utf-8")
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        where = f"line {line}: {head[max(0, error.start - 8) : error.end]!r}"
        what = f"column {', '.join(map(repr, names))} is read as binary" if names else "its names are read with marks"
        warn_user(
            f"{call}: the file is not {spec.encoding or 'UTF-8'} ({where}), so {what}; pass"
            f" encoding={guessed_encoding(head)!r} or the one that it has"
        )


def _warn_of_empty(spec: CsvSource, head: bytes, schema: pa.Schema, dialect: CsvDialect, call: str) -> None:
    """Tell of columns that would be numbers or dates if an empty field were a null in them."""
    nulls = {name: spec.column_nulls.get(name, spec.null_values) for name in schema.names}
    texts = [name for name, each in nulls.items() if "" not in each and pa.types.is_string(schema.field(name).type)]
    if not texts or spec.infer_rows == 0:
        return
    with_empty = msgspec.structs.replace(spec, column_nulls={name: ("", *each) for name, each in nulls.items()})
    begin = first_record_end(head, dialect.delimiter, dialect.quote) if spec.header else 0
    try:
        found = inferred_types(head[begin:], schema.names, with_empty, dialect)
    except SchemaError:
        return
    typed = [name for name in texts if _is_typed(found.field(name).type)]
    if typed:
        shown = ["", *nulls[typed[0]]]
        warn_user(
            f"{call}: {_shortened(', '.join(typed))} would be {found.field(typed[0]).type}, but an empty field is none"
            f" of its nulls; pass null_values={shown!r}"
        )


def _is_header(spec: CsvSource, head: bytes, schema: pa.Schema, dialect: CsvDialect, *, is_inferred: bool) -> bool:
    try:
        fields = first_fields(head, dialect, spec.paths[0], spec.encoding)
    except DataError:
        return False
    if not is_inferred:
        return [name.strip().casefold() for name in fields] == [name.casefold() for name in schema.names]
    if len(set(fields)) < len(fields) or not all(_NAME.fullmatch(name.strip()) for name in fields):
        return False
    body = head[first_record_end(head, dialect.delimiter, dialect.quote) :]
    if not body.strip():
        return False
    try:
        below = inferred_types(body, schema.names, spec, dialect)
    except SchemaError:
        return False
    if any(_is_typed(below.field(name).type) and pa.types.is_string(schema.field(name).type) for name in schema.names):
        return True
    usual = [name.strip().lower() in _USUAL for name in fields]
    return len(fields) > 1 and sum(usual) * 2 >= len(fields)


def _is_typed(data_type: pa.DataType) -> bool:
    return not (pa.types.is_string(data_type) or pa.types.is_null(data_type) or pa.types.is_binary(data_type))


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."
