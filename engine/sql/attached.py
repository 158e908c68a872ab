"""Tables of catalogs that were attached, by their names in a query.

    env.attach("lake", catalog)
    FROM lake.sales.orders
    JOIN lake.sales.orders FOR VERSION AS OF 42 AS old       a snapshot by its number, a branch or tag by its name
    FROM lake.sales.orders FOR TIMESTAMP AS OF '2026-11-01'  as it was at a time

    attached_rows(environment, node)                         the rows of a table of FROM, None for another name
    changing_table(environment, node, ...)                   the table that MERGE, UPDATE or DELETE changes
    attached_tables(environment)                             names of all tables, for SHOW TABLES
    attached_table(environment, "lake.sales.orders")         None where it is of no attached catalog

Held by: tests/sql/test_attached.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlglot import exp

from engine.api.data_set import DataSet
from engine.api.environment import Environment
from engine.api.table_targets import delta, iceberg
from engine.errors import PlanError
from engine.formats.table_target import TableTarget
from engine.graph.plan import Source
from engine.graph.source_spec import FormatSource
from engine.sql.dialect import parsed


def attached_rows(environment: Environment, node: exp.Table) -> DataSet | None:
    """Return the rows of a table of an attached catalog, None for another name. Raises: what reading a table does."""
    parts = _names(node)
    if len(parts) < 3 or parts[0] not in environment.catalogs:
        return None
    return _read(environment, parts, _version(node.args.get("version") or node.args.get("when")))


def is_delta(environment: Environment, node: exp.Table) -> bool:
    """Return whether a name is that of a Delta table by its path: delta."path"."""
    return node.db.lower() == "delta" and not node.catalog and "delta" not in environment.catalogs


def changing_table(
    environment: Environment, node: exp.Table, table: Callable[[exp.Table], DataSet | None]
) -> TableTarget | None:
    """Return the table that a statement may change, None for a name that is none of such."""
    if is_delta(environment, node):
        return delta(node.name)
    parts = _names(node)
    if len(parts) > 2 and parts[0] in environment.catalogs:
        return iceberg(".".join(parts[1:]), environment.catalogs[parts[0]])
    found = table(node)
    operator = None if found is None else found._node.operator
    spec = operator.spec if isinstance(operator, Source) else None
    is_whole = isinstance(spec, FormatSource) and spec.format == "delta" and spec.predicate is None
    return delta(spec.paths[0]) if is_whole and isinstance(spec, FormatSource) else None


def _names(node: exp.Table) -> list[str]:
    """Return the parts of a name; those without quotes in lower case, for a catalog finds them as they are written."""
    return [part.name if part.args.get("quoted") else part.name.lower() for part in node.parts]


def _version(node: exp.Expr | None) -> dict[str, Any]:
    if node is None:
        return {}
    value = node.expression
    if "VERSION" not in str(node.name).upper():
        return {"as_of": value.find(exp.Literal).name}
    return {"branch": value.name} if value.is_string else {"snapshot_id": int(value.name)}


def _read(environment: Environment, parts: Sequence[str], version: dict[str, Any]) -> DataSet:
    return environment.read_iceberg(".".join(parts[1:]), environment.catalogs[parts[0]], **version)


def attached_table(environment: Environment, name: str) -> DataSet | None:
    """Return the table of an attached catalog, None for another name."""
    try:
        node = parsed(f"SELECT * FROM {name}").find(exp.Table)  # noqa: S608 - parsed, and not run
    except PlanError:
        return None
    return None if node is None else attached_rows(environment, node)


def attached_tables(environment: Environment) -> list[str]:
    """Return the names of the tables of all attached catalogs."""
    return sorted(
        ".".join((name, *table))
        for name, catalog in environment.catalogs.items()
        for namespace in _namespaces(catalog, ())
        for table in catalog.list_tables(namespace)
    )


def _namespaces(catalog: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for namespace in catalog.list_namespaces(above):
        if len(namespace) > len(above):
            yield tuple(namespace)
            yield from _namespaces(catalog, tuple(namespace))
