"""The views that say which tables there are, and which columns they have: information_schema.tables, and columns.

    SELECT table_name FROM information_schema.tables
    SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'orders'

Registered data sets are tables of the catalog ``drey`` and the schema ``main``: a view where they are computed. Tables
of attached catalogs have the names by which queries read them; their columns are read from the catalog.

Held by: tests/sql/test_information_schema.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from sqlglot import exp

from engine.api.data_set import DataSet
from engine.api.environment import Environment
from engine.dialects.parser import sentence
from engine.errors import PlanError
from engine.graph.plan import Source
from engine.near_names import did_you_mean
from engine.sql_values.data_types import shown_type
from engine.statements.attached import attached_table, attached_tables

_NAME: Final = "information_schema"
_TEXT: Final = pa.string()
_OF_TABLES: Final = pa.schema([(f"table_{part}", _TEXT) for part in ("catalog", "schema", "name", "type")])
_OF_COLUMNS: Final = pa.schema(
    [
        *list(_OF_TABLES)[:3],
        ("column_name", _TEXT),
        ("ordinal_position", pa.int64()),
        ("is_nullable", _TEXT),
        ("data_type", _TEXT),
    ]
)


class Table(NamedTuple):
    """A table with the parts of its name."""

    catalog: str
    schema: str
    name: str
    #: data set, None for a table of an attached catalog, which is read where its columns are wanted
    data: DataSet | None

    @property
    def kind(self) -> str:
        """BASE TABLE or VIEW."""
        is_stored = self.data is None or isinstance(self.data._node.operator, Source)
        return "BASE TABLE" if is_stored else "VIEW"

    def columns(self, environment: Environment) -> pa.Schema:
        """Return the columns; those of an attached catalog are read now."""
        data = self.data
        if data is None:
            name = ".".join(f'"{part}"' for part in (self.catalog, *self.schema.split("."), self.name))
            data = attached_table(environment, name)
        assert data is not None, "the table is listed"
        return data.schema


def is_information_schema(node: exp.Table) -> bool:
    """Return whether a name is that of a view of this schema."""
    return node.db.lower() == _NAME and not node.catalog


def information_schema(environment: Environment, node: exp.Table) -> DataSet:
    """Return the rows of a view. Raises: PlanError for one that is not there."""
    views = {"tables": _tables_view, "columns": _columns_view}
    view = views.get(node.name.lower())
    if view is None:
        there = f"{did_you_mean(node.name, views)} (there are {', '.join(views)})"
        raise PlanError(sentence(node, f"no view {_NAME}.{node.name}{there}"))
    if node.args.get("version") is not None or node.args.get("when") is not None:
        raise PlanError(sentence(node, f"a version of {_NAME}.{node.name}; it lists the tables that are there now"))
    return environment.from_arrow(view(environment))


def listed_tables(environment: Environment) -> Iterator[Table]:
    """Yield all tables: registered ones by name, then those of attached catalogs."""
    for name, data in sorted(environment.tables.items()):
        yield Table("drey", "main", name, data)
    for name in attached_tables(environment):
        catalog, *schema, own = name.split(".")
        yield Table(catalog, ".".join(schema), own, None)


def _tables_view(environment: Environment) -> pa.Table:
    return _table([(*one[:3], one.kind) for one in listed_tables(environment)], _OF_TABLES)


def _columns_view(environment: Environment) -> pa.Table:
    rows = []
    for one in listed_tables(environment):
        for number, field in enumerate(one.columns(environment), 1):
            nullable = "YES" if field.nullable else "NO"
            rows.append((*one[:3], field.name, number, nullable, shown_type(field.type)))
    return _table(rows, _OF_COLUMNS)


def _table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table(
        [pa.array(list(one), field.type) for one, field in zip(columns, schema, strict=True)], schema=schema
    )
