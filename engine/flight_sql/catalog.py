"""Catalog: which catalogs, schemas and tables there are, as the tables that clients of Flight SQL ask for.

    answer("CommandGetTables", message, environment) ─► pa.Table        schema_of(name, message) ─► its columns

Registered names are tables of drey.main, where queries find them, too; tables of attached catalogs have their own.
Filters are patterns of LIKE: % is any text, _ any sign, and a backslash takes their meaning from them. No table has
keys, so the tables of keys are empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine.flight_sql.messages import given
from engine.flight_sql.sql_info import SQL_INFO, TYPE_INFO, sql_info, type_info
from engine.statements.information_schema import Table, listed_tables

if TYPE_CHECKING:
    from engine.api.environment import Environment

_TEXT: Final = pa.string()
_CATALOGS: Final = pa.schema([pa.field("catalog_name", _TEXT, nullable=False)])
_SCHEMAS: Final = pa.schema([("catalog_name", _TEXT), pa.field("db_schema_name", _TEXT, nullable=False)])
_TABLES: Final = pa.schema(
    [
        ("catalog_name", _TEXT),
        ("db_schema_name", _TEXT),
        pa.field("table_name", _TEXT, nullable=False),
        pa.field("table_type", _TEXT, nullable=False),
    ]
)
_TABLE_SCHEMA: Final = pa.field("table_schema", pa.binary(), nullable=False)
_TYPES: Final = pa.schema([pa.field("table_type", _TEXT, nullable=False)])
_PRIMARY_KEYS: Final = pa.schema(
    [
        ("catalog_name", _TEXT),
        ("db_schema_name", _TEXT),
        pa.field("table_name", _TEXT, nullable=False),
        pa.field("column_name", _TEXT, nullable=False),
        ("key_name", _TEXT),
        pa.field("key_sequence", pa.int32(), nullable=False),
    ]
)
_FOREIGN_KEYS: Final = pa.schema(
    [
        *(
            pa.field(f"{side}_{name}", _TEXT, nullable=name.endswith(("catalog_name", "schema_name")))
            for side in ("pk", "fk")
            for name in ("catalog_name", "db_schema_name", "table_name", "column_name")
        ),
        pa.field("key_sequence", pa.int32(), nullable=False),
        ("fk_key_name", _TEXT),
        ("pk_key_name", _TEXT),
        pa.field("update_rule", pa.uint8(), nullable=False),
        pa.field("delete_rule", pa.uint8(), nullable=False),
    ]
)
#: columns of the answers of commands
_SCHEMAS_OF: Final = {
    "CommandGetCatalogs": _CATALOGS,
    "CommandGetDbSchemas": _SCHEMAS,
    "CommandGetTables": _TABLES,
    "CommandGetTableTypes": _TYPES,
    "CommandGetPrimaryKeys": _PRIMARY_KEYS,
    "CommandGetExportedKeys": _FOREIGN_KEYS,
    "CommandGetImportedKeys": _FOREIGN_KEYS,
    "CommandGetCrossReference": _FOREIGN_KEYS,
    "CommandGetSqlInfo": SQL_INFO,
    "CommandGetXdbcTypeInfo": TYPE_INFO,
}
#: names that information_schema and Flight SQL give kinds of tables
_KINDS: Final = {"BASE TABLE": "TABLE", "VIEW": "VIEW"}


def is_of_catalog(name: str) -> bool:
    """Return whether a command asks for one of these tables."""
    return name in _SCHEMAS_OF


def schema_of(name: str, message: Any) -> pa.Schema:
    """Return the columns of the answer to a command."""
    has_schemas = name == "CommandGetTables" and message.include_schema
    return _TABLES.append(_TABLE_SCHEMA) if has_schemas else _SCHEMAS_OF[name]


def answer(name: str, message: Any, environment: Environment, *, is_read_only: bool) -> pa.Table:
    """Return the answer to a command."""
    schema = schema_of(name, message)
    if name == "CommandGetSqlInfo":
        return sql_info(list(message.info), is_read_only=is_read_only)
    if name == "CommandGetXdbcTypeInfo":
        return type_info(given(message, "data_type"))
    if name == "CommandGetTableTypes":
        return pa.table([sorted(_KINDS.values())], schema=schema)
    rows: set[tuple[Any, ...]] = set()
    if name == "CommandGetCatalogs":
        rows = {(one,) for one in ("drey", *environment.catalogs)}
    elif name == "CommandGetDbSchemas":
        fits = _fitting(message)
        rows = {one[:2] for one in (("drey", "main"), *listed_tables(environment)) if fits(str(one[0]), str(one[1]))}
    elif name == "CommandGetTables":
        return _table(list(_tables(message, environment)), schema)
    return _table(sorted(rows), schema)


def _tables(message: Any, environment: Environment) -> Iterator[tuple[Any, ...]]:
    fits, of_name = _fitting(message), _like(given(message, "table_name_filter_pattern"))
    kinds = set(message.table_types)
    for one in sorted(listed_tables(environment), key=lambda one: one[:3]):
        kind = _KINDS[one.kind]
        if fits(one.catalog, one.schema) and of_name(one.name) and (not kinds or kind in kinds):
            row = (one.catalog, one.schema, one.name, kind)
            yield (*row, _columns(one, environment)) if message.include_schema else row


def _columns(table: Table, environment: Environment) -> bytes:
    return bytes(table.columns(environment).serialize().to_pybytes())


def _fitting(message: Any) -> Callable[[str, str], bool]:
    catalog, of_schema = given(message, "catalog"), _like(given(message, "db_schema_filter_pattern"))
    return lambda name, schema: (catalog is None or catalog == name) and of_schema(schema)


def _like(pattern: str | None) -> Callable[[str], bool]:
    """Return whether a name fits a pattern of LIKE; None is any."""
    if pattern is None:
        return lambda _name: True
    signs = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    said = re.compile("".join(signs.get(part) or re.escape(part[-1]) for part in parts), re.DOTALL)
    return lambda name: said.fullmatch(name) is not None


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table(
        [pa.array(list(one), field.type) for one, field in zip(columns, schema, strict=True)], schema=schema
    )
