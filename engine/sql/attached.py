"""Tables of catalogs that were attached, by their names in a query.

    env.attach("lake", catalog)
    FROM lake.sales.orders
    JOIN lake.sales.orders FOR VERSION AS OF 42 AS old       a snapshot by its number, a branch or tag by its name
    FROM lake.sales.orders FOR TIMESTAMP AS OF '2026-11-01'  as it was at a time

    attached_rows(environment, node)                         the rows of a table of FROM, None for another name
    attached_tables(environment)                             names of all tables, for SHOW TABLES
    attached_table(environment, "lake.sales.orders")         None where it is of no attached catalog

Held by: tests/sql/test_attached.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import exp

from engine.api.data_set import DataSet
from engine.api.environment import Environment
from engine.errors import PlanError
from engine.sql.dialect import parsed


def attached_rows(environment: Environment, node: exp.Table) -> DataSet | None:
    """Return the rows of a table of an attached catalog, None for another name. Raises: what reading a table does."""
    # names without quotes are in lower case, for a catalog finds them as they are written
    parts = [part.name if part.args.get("quoted") else part.name.lower() for part in node.parts]
    if len(parts) < 3 or parts[0] not in environment.catalogs:
        return None
    return _read(environment, parts, _version(node.args.get("version") or node.args.get("when")))


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
