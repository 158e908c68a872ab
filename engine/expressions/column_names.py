"""Column names: any text that is not empty, and can be encoded.

    check_column_name(name, "alias")                  the name, or a SchemaError
    column_field(name, type, nullable) -> pa.Field    of a column whose name a user gave
    check_columns(names, schema)                      names of columns that are there

Half of a surrogate pair is a character of Python's, but no text: no file, no schema and no terminal takes it. Every
name that comes from outside Arrow passes here; a name in a ``pyarrow.Schema`` cannot hold one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from engine.errors import SchemaError


def check_column_name(name: Any, what: str) -> str:
    """Return a name that a column may have.

    Raises:
        SchemaError: it is no text, empty, or holds half of a surrogate pair; ``what`` is the call that it was given to.
    """
    if not isinstance(name, str) or not name:
        raise SchemaError(f"{what}({name!r}): a column name is a non-empty string")
    if not name.isascii() and any("\ud800" <= each <= "\udfff" for each in name):
        raise SchemaError(f"{what}({name!r}): a column name must be valid text, without surrogates")
    return name


def column_field(name: str, data_type: pa.DataType, what: str, *, nullable: bool = True) -> pa.Field:
    """Return a column of a schema; SchemaError where its name is no text."""
    return pa.field(check_column_name(name, what), data_type, nullable)


def check_columns(names: Iterable[str], schema: pa.Schema) -> None:
    """Raise SchemaError for a name that is no column."""
    known = set(schema.names)
    for name in names:
        if not isinstance(name, str):
            raise SchemaError(f"{name!r} is no column name")
        if name not in known:
            from engine.expressions.compile import unknown_column

            raise unknown_column(name, schema.names)
