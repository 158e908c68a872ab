"""Rows of CSV beside files that are there: headers, and types that texts look like.

Held by: tests/integration/test_appended_types.py
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
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


def check_header(spec: SinkSpec, own: pa.Schema, file: str, what: str) -> None:
    """Raise ConfigurationError for a file with a header where rows have none, or the other way round."""
    try:
        begin = heads([file], spec.compression, _HEADER_BYTES, 1)[0]
        head = begin.decode(style_of(spec).encoding or "utf-8-sig", errors="replace")
    except (OSError, EngineError):
        return  # readers of the file are told what is wrong
    first_line = head.partition("\n")[0].strip("\r")
    if not first_line:
        return
    there = next(csv.reader([first_line], delimiter=spec.delimiter))
    if (sorted(there) == sorted(own.names)) == spec.header:
        return
    what = f"{what.replace(': mode', f': header={spec.header}, mode', 1)}: what is there ({file}) begins with"
    if spec.header:
        shown = spec.delimiter.join(there)
        shown = shown if len(shown) <= _SHOWN_MAX else shown[:_SHOWN_MAX] + "..."
        raise ConfigurationError(f"{what} {shown}, not with the header; leave header=True out, or take a new folder")
    raise ConfigurationError(f"{what} a header; pass header=True, or take a new folder")


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
