"""Rows of CSV beside files that are there: headers, texts of nulls, and types that texts look like.

Held by: tests/integration/test_appended_types.py
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import pyarrow as pa

from engine.csv.style import style_of
from engine.errors import ConfigurationError, DreyWarning, EngineError
from engine.files.compression import heads
from engine.graph.source_spec import SinkSpec

#: bytes of a file in which a header is looked for
_HEADER_BYTES: Final = 64 << 10
_SHOWN_MAX: Final = 100
#: texts in every number, date and time
_DIGITS: Final = re.compile(r"\d|nan|inf", re.IGNORECASE)


def check_header(spec: SinkSpec, own: pa.Schema, file: str, what: str) -> None:
    """Raise ConfigurationError for a file with a header where rows have none, or the other way round."""
    there = next(_first_rows(spec, file), None)
    if not there or (sorted(there) == sorted(own.names)) == spec.header:
        return
    what = f"{what.replace(': mode', f': header={spec.header}, mode', 1)}: what is there ({file}) begins with"
    if spec.header:
        shown = spec.delimiter.join(there)
        shown = shown if len(shown) <= _SHOWN_MAX else shown[:_SHOWN_MAX] + "..."
        raise ConfigurationError(f"{what} {shown}, not with the header; leave header=True out, or take a new folder")
    raise ConfigurationError(f"{what} a header; pass header=True, or take a new folder")


def check_null_text(spec: SinkSpec, own: pa.Schema, file: str, what: str) -> None:
    """Raise ConfigurationError where the only text without digits in a column of numbers or times is another one."""
    rows = _first_rows(spec, file)
    names, given = next(rows, []) if spec.header else own.names, style_of(spec).null_text
    found: dict[str, set[str]] = {}
    for row in rows:
        for name, text in zip(names, row, strict=False):
            if not _DIGITS.search(text):
                found.setdefault(name, set()).add(text)
    for field in own:
        texts = found.get(field.name, set())
        if kind_of(field.type) in ("number", "moment", "time") and len(texts) == 1 and given not in texts:
            other = texts.pop()
            raise ConfigurationError(f"{what} has {other!r} for nulls of {field.name!r}; pass null_text={other!r}")


def _first_rows(spec: SinkSpec, file: str) -> Iterator[list[str]]:
    """Return the rows at the beginning of a file that are whole; none where it cannot be read."""
    try:
        head = heads([file], spec.compression, _HEADER_BYTES, 1)[0]
        lines = head.decode(style_of(spec).encoding or "utf-8-sig", errors="replace").splitlines()
    except (OSError, EngineError):
        return iter(())  # readers of the file are told what is wrong
    whole = lines if len(head) < _HEADER_BYTES or len(lines) == 1 else lines[:-1]
    return csv.reader(whole, delimiter=spec.delimiter)


def check_decimal(spec: SinkSpec, own: pa.Schema, what: str, found: Callable[[SinkSpec], pa.Schema]) -> None:
    """Raise ConfigurationError where a column is text by the decimal mark of a sink, and numbers by the other one.

    ``found``: returns the schema of a file that is there, as the style of a sink reads it.
    """
    style = style_of(spec)
    other = "," if style.decimal == "." else "."
    types = [(each.name, each.type) for each in own]
    names = [name for name, each in types if pa.types.is_floating(each) or pa.types.is_decimal(each)]
    if not names or other == spec.delimiter:
        return
    swapped = msgspec.structs.replace(spec, options=msgspec.structs.replace(style, decimal=other).text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DreyWarning)
            there, by_other = found(spec), found(swapped)
    except (OSError, pa.ArrowException, EngineError):
        return  # readers of the file are told what is wrong
    for name in names:
        place = there.get_field_index(name) if spec.header else own.get_field_index(name)
        if not 0 <= place < min(len(there), len(by_other)):
            continue
        if (kind_of(there.field(place).type), kind_of(by_other.field(place).type)) == ("text", "number"):
            raise ConfigurationError(f"{what} has {other!r} before fractions of {name!r}; pass decimal={other!r}")


def kind_of(data_type: pa.DataType) -> str:
    """Return the form that texts of a type have."""
    types = pa.types
    if types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type):
        return "number"
    if types.is_date(data_type) or types.is_timestamp(data_type):
        return "moment"
    for kind in ("boolean", "time", "duration", "null"):
        if getattr(types, f"is_{kind}")(data_type):
            return kind
    return "nested" if types.is_nested(data_type) else "text"


def fits(known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
    """Return whether texts of a type are read together with those that are there; False: that is seen by each text."""
    kinds = kind_of(known), kind_of(own)
    if schema_mode == "union" or kinds[0] in (kinds[1], "text") or "null" in kinds:
        return True  # texts take any
    if kinds[1] == "duration":
        return True if kinds[0] == "number" else None
    return False if kinds[1] == "text" else None
