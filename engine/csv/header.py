"""The first record of a file as names of its columns, and which column of a file is which of the source.

    column_names(["", "a", "a", ""]) -> ["column_0", "a", "a_1", "column_3"]
    layout = layout_of(names, schema, named, path)      the columns of one file, by the names of its header

A field without a name is called as those of files without a header are (pandas writes one above its index), a name
that is there again gets a number, as in DuckDB. Files of one source may have the columns in any order.

Held by: tests/integration/test_csv_headers.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from engine.errors import DataError

#: a field behind the last column, which is empty in every record: a delimiter ends the lines
REST: Final = ""


def column_names(fields: Sequence[str]) -> list[str]:
    """Return the names of columns whose header has these fields: each is there once, none is empty."""
    taken = set(fields)
    names: list[str] = []
    for index, field in enumerate(fields):
        name = field or f"column_{index}"
        number = 0
        while name in names or (number and name in taken) or (not field and name in taken):
            number += 1
            name = f"{field or f'column_{index}'}_{number}"
        names.append(name)
    return names


def renamed(fields: Sequence[str], names: Sequence[str]) -> str:
    """Return the message about names that differ from the header, "" if none does."""
    pairs = [(field, name) for field, name in zip(fields, names, strict=True) if field != name]
    return ", ".join(f"{name} for {'a second ' + repr(field) if field else 'no name'}" for field, name in pairs)


def layout_of(names: Sequence[str], schema: pa.Schema, named: Sequence[str], path: str) -> pa.Schema:
    """Return the columns of a file in its order.

    Args:
        names: of its header.
        schema: of the source's columns as the first file has them, and maybe REST.
        named: columns that every file must have, and others besides as it likes; (): those of the first file, no more.
        path: for errors.

    Raises: DataError: columns are missing, or there are more.
    """
    known = [name for name in schema.names if name != REST]
    missing = [name for name in named or known if name not in names]
    more = [] if named else [name for name in names if name not in known]
    if missing or more:
        has = f"has no {', '.join(missing)}" if missing else f"has {', '.join(more)}, which the first file has not"
        raise DataError(f"file {path}, line 1: the header {has}; it is {', '.join(names)}, expected {', '.join(known)}")
    fields = [schema.field(name) if name in known else pa.field(name, pa.string()) for name in names]
    rest = [schema.field(REST)] if REST in schema.names else []
    return pa.schema([*fields, *rest])
