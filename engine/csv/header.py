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

#: name of the empty field behind the last column, in files whose lines end with a delimiter
REST: Final = ""
#: names of columns that an error shows
_LISTED_MAX: Final = 100


def column_names(fields: Sequence[str]) -> list[str]:
    """Return the names of columns whose header has these fields: each is there once, none is empty."""
    taken = set(fields)
    names: dict[str, None] = {}
    for index, field in enumerate(fields):
        name = field or f"column_{index}"
        number = 0
        while name in names or (number and name in taken) or (not field and name in taken):
            number += 1
            name = f"{field or f'column_{index}'}_{number}"
        names[name] = None
    return list(names)


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
    known, there = {field.name: field for field in schema}, set(names)
    rest = known.pop(REST, None)
    missing = [name for name in named or known if name not in there]
    more = [] if named else [name for name in names if name not in known]
    if missing or more:
        has = f"has no {listed(missing)}" if missing else f"has {listed(more)}, which the first file has not"
        raise DataError(f"file {path}, line 1: the header {has}; it is {listed(names)}, expected {listed([*known])}")
    fields = [known.get(name) or pa.field(name, pa.string()) for name in names]
    return pa.schema(fields if rest is None else [*fields, rest])


def listed(names: Sequence[str]) -> str:
    """Return names in one text; of very many the first ones."""
    more = len(names) - _LISTED_MAX
    return ", ".join(names[:_LISTED_MAX]) + (f" and {more} more" if more > 0 else "")
