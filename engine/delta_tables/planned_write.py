"""The client's side of a write: what it does to the table, and the types that rows must have for it.

    planned_write(place, rows' schema, mode, ...) -> (TableWrite, schema that rows must have)

Rows that are added have the table's columns: where a type of theirs is narrower, it is widened. With the schema mode
"union" they may lack some, which are null then, and have others, which the table gets.

Held by: tests/delta_tables/test_write_delta.py
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from engine.delta_tables.table_commit import opened
from engine.delta_tables.table_rules import (
    check_columns,
    check_default,
    check_made,
    check_removal,
    check_writable,
    indexed_columns,
)
from engine.delta_tables.table_types import stored_schema, to_arrow, to_delta
from engine.delta_tables.table_write import TableWrite, required_names
from engine.errors import ConfigurationError, SchemaError
from engine.parquet.source import widened

_CALL = "write_delta"


def planned_write(
    place: str,
    schema: pa.Schema,
    mode: str,
    partition_by: Sequence[str],
    schema_mode: str,
    properties: Mapping[str, str],
) -> tuple[TableWrite, pa.Schema]:
    """Return the change of a table, and the schema that rows are to have.

    Raises: SchemaError (columns), ConfigurationError (words), NotYetSupportedError (the table's features).
    """
    own = stored_schema(schema, _CALL)
    table = opened(place)
    check_columns(own.names, f"{_CALL}({place!r})")
    if table is None or mode == "error":
        check_made(f"{_CALL}({place!r})", properties, own.names)
        indexed = indexed_columns(properties, f"{_CALL}({place!r})")
        return TableWrite(mode, to_delta(own), tuple(partition_by), dict(properties), indexed=indexed), own
    check_writable(table, place)
    if mode != "append":
        check_removal(table.metadata().configuration, place, _CALL)
    if properties:
        raise ConfigurationError(f"{_CALL}({place!r}): properties= are those of a table that is made, and this one is")
    keys = tuple(table.metadata().partition_columns)
    indexed = indexed_columns(table.metadata().configuration, f"{_CALL}({place!r})")
    if partition_by and tuple(partition_by) != keys:
        by = f"by {', '.join(keys)}" if keys else "by no column"
        raise ConfigurationError(f"{_CALL}({place!r}): partition_by={list(partition_by)!r}: it is partitioned {by}")
    text = table.schema().to_json()
    there = _plain(to_arrow(text, _CALL))
    if mode == "overwrite" and not there.equals(own):
        if [key for key in keys if key not in own.names]:
            raise SchemaError(f"{_CALL}({place!r}): it is partitioned by {', '.join(keys)}, which the rows lack")
        return TableWrite(mode, to_delta(own), keys, indexed=indexed), own
    wanted, new = _added_schema(there, own, schema_mode, place)
    missing = [key for key in keys if key not in own.names]
    if missing:
        raise SchemaError(f"{_CALL}({place!r}): it is partitioned by {', '.join(keys)}, which the rows lack")
    known: dict[str, Any] = json.loads(text)
    required = required_names(known, keys)
    absent = [name for name in required if name not in own.names]
    if absent:
        raise SchemaError(f"{_CALL}({place!r}): column {absent[0]!r} may not be null, and the rows lack it")
    check_columns([*there.names, *(field.name for field in new)], f"{_CALL}({place!r})")
    for name in there.names:
        if name not in own.names:
            check_default(known, name, f"{_CALL}({place!r})")
    columns = to_delta(pa.schema(new))["fields"]
    known["fields"] += columns
    return TableWrite(mode, known, keys, new_columns=tuple(columns), required=required, indexed=indexed), wanted


def _plain(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _added_schema(there: pa.Schema, own: pa.Schema, schema_mode: str, place: str) -> tuple[pa.Schema, list[pa.Field]]:
    """Return the schema of rows that are added, and the columns that the table does not have."""
    differing = sorted(set(there.names) ^ set(own.names))
    if differing and schema_mode == "strict":
        raise SchemaError(
            f"{_CALL}({place!r}): the rows have other columns than the table: {', '.join(differing)}; select those"
            " that it has, or pass schema_mode='union'"
        )
    new = [field for field in own if field.name not in there.names]
    wanted = []
    for field in there:
        if field.name not in own.names:
            continue
        found = own.field(field.name).type
        if found != field.type and widened(field.type, found) != field.type and not pa.types.is_null(found):
            raise SchemaError(
                f"{_CALL}({place!r}): column {field.name!r} is {found}, and {field.type} in the table; cast it"
            )
        wanted.append(field)
    return pa.schema([*wanted, *new]), new
