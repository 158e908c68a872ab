"""Tables of catalogs that were attached, by their names in a query.

    env.attach("lake", catalog)
    FROM lake.sales.orders
    JOIN lake.sales.orders FOR VERSION AS OF 42 AS old       a snapshot by its number, a branch or tag by its name
    FROM lake.sales.orders FOR TIMESTAMP AS OF '2026-11-01'  as it was at a time

    attached_rows(environment, node)                         the rows of a table of FROM, None for another name
    changing_table(environment, node, ...)                   the table that MERGE, UPDATE or DELETE changes
    renew(environment, data_set)                             its registered name has the rows that it has then
    attached_tables(environment)                             names of all tables, for SHOW TABLES
    attached_table(environment, "lake.sales.orders")         None where it is of no attached catalog
    with refusing_files(why): ...                            statements of this thread may not name files

Held by: tests/sql/test_attached.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from msgspec.structs import replace
from sqlglot import exp

from engine.api.data_set import DataSet
from engine.api.environment import Environment
from engine.config.sql_options import FILES_ENABLED
from engine.dialects.parser import parsed, sentence
from engine.errors import PlanError
from engine.formats.table_target import TableTarget
from engine.graph.plan import Source
from engine.graph.source_spec import FormatSource
from engine.outputs.table_targets import delta, iceberg
from engine.statements.versions import Version

#: reason for which statements of this thread may not name files; "": they may
_refusal: ContextVar[str] = ContextVar("refusal", default="")


@contextmanager
def refusing_files(why: str) -> Iterator[None]:
    """Refuse each file that a statement names within; ``why`` "" changes nothing."""
    before = _refusal.set(why or _refusal.get())
    try:
        yield
    finally:
        _refusal.reset(before)


def check_files(environment: Environment, path: str) -> None:
    """Raise PlanError where statements may not name files."""
    why = _refusal.get()
    if not why and not environment.configuration.get(FILES_ENABLED):
        why = "statements may not name files here (sql.files.enabled)"
    if why:
        raise PlanError(f"sql: {path!r}: {why}; SHOW TABLES lists the tables")


def attached_rows(environment: Environment, node: exp.Table, version: Version | None = None) -> DataSet | None:
    """Return the rows of a table of an attached catalog, None for another name. Raises: what reading a table does."""
    parts = _names(node)
    if len(parts) < 3 or parts[0] not in environment.catalogs:
        return None
    options = environment.storage_options_of(parts[0])
    catalog = environment.catalogs[parts[0]]
    return environment.read_iceberg(".".join(parts[1:]), catalog, **_snapshot(version), storage_options=options)


def delta_rows(environment: Environment, node: exp.Table, version: Version | None, text: str) -> DataSet:
    """Return the rows of a Delta table by its path. Raises: what reading a table does."""
    check_files(environment, node.name)
    if version is None:
        return environment.read_delta(node.name)
    if version.name is not None:
        raise PlanError(sentence(node, f"{version.name!r} is no version of a Delta table; those are numbers", text))
    return environment.read_delta(node.name, version=version.number, timestamp=version.moment)


def is_delta(environment: Environment, node: exp.Table) -> bool:
    """Return whether a name is that of a Delta table by its path: delta."path"."""
    return node.db.lower() == "delta" and not node.catalog and "delta" not in environment.catalogs


def is_main(environment: Environment, node: exp.Table) -> bool:
    """Return whether a name has the parts that information_schema gives registered ones: main.name, drey.main.name."""
    catalog = node.catalog.lower()
    return node.db.lower() == "main" and catalog in ("", "drey") and "drey" not in environment.catalogs


def changing_table(
    environment: Environment, node: exp.Table, table: Callable[[exp.Table], DataSet | None]
) -> TableTarget | None:
    """Return the table that a statement may change, None for a name that is none of such."""
    if is_delta(environment, node):
        check_files(environment, node.name)
        return delta(node.name)
    parts = _names(node)
    if len(parts) > 2 and parts[0] in environment.catalogs:
        options = environment.storage_options_of(parts[0])
        return iceberg(".".join(parts[1:]), environment.catalogs[parts[0]], options)
    place = _delta_place(table(node))
    return None if place is None else delta(place)


def _delta_place(found: DataSet | None) -> str | None:
    """Return the folder of a Delta table that is a data set as it was read, None for others."""
    operator = None if found is None else found._node.operator
    spec = operator.spec if isinstance(operator, Source) else None
    is_whole = isinstance(spec, FormatSource) and spec.format == "delta" and spec.predicate is None
    return spec.paths[0] if is_whole and isinstance(spec, FormatSource) else None


def renew(environment: Environment, found: DataSet | None) -> None:
    """Register a data set that is a Delta table anew, at its last version, under each of its names."""
    place = _delta_place(found)
    if found is None or place is None:
        return
    from engine.delta_tables.delta_source import delta_source

    spec, statistics, schema = delta_source(place)
    node = found._node
    operator = replace(node.operator, spec=spec, statistics=statistics, cuts={})
    renewed = found._with(replace(node, operator=operator, schema=schema, cached=None, said=None))
    for name in [name for name, one in environment.tables.items() if one is found]:
        environment.register(name, renewed)


def _names(node: exp.Table) -> list[str]:
    """Return the parts of a name; those without quotes in lower case, for a catalog finds them as they are written."""
    return [part.name if part.args.get("quoted") else part.name.lower() for part in node.parts]


def _snapshot(version: Version | None) -> dict[str, Any]:
    """Return the arguments of read_iceberg() for a version."""
    if version is None:
        return {}
    if version.number is not None:
        return {"snapshot_id": version.number}
    return {"as_of": version.moment} if version.name is None else {"branch": version.name}


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
