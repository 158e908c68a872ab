"""Tables of catalogs that were attached: in a query each becomes one name, under which its rows are a data set.

    env.attach("lake", catalog)
    FROM lake.sales.orders                                   FROM "lake.sales.orders" AS orders
    JOIN lake.sales.orders FOR VERSION AS OF 42 AS old       a snapshot by its number, a branch or tag by its name
    FROM lake.sales.orders FOR TIMESTAMP AS OF '2026-11-01'  as it was at a time

    with_attached(text, environment) -> (text, {name: data set})
    attached_tables(environment)     -> names of all tables, for SHOW TABLES
    attached_table(environment, "lake.sales.orders")         None where it is of no attached catalog

Held by: tests/sql/test_attached.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from engine.api.data_set import DataSet
from engine.api.environment import Environment
from engine.sql.text_pieces import is_comment, pieces

_NAME: Final = r"(?:\"[^\"]+\"|\w+)"
_TABLE: Final = re.compile(
    rf"\b(FROM|JOIN)(\s+)({_NAME}(?:\s*\.\s*{_NAME}){{2,}})"
    r"(?:\s+FOR\s+(?:SYSTEM_)?(VERSION|TIMESTAMP|TIME)\s+AS\s+OF\s+(?:TIMESTAMP\s*)?(\d+|'[^']*'))?"
    rf"(\s+(?:AS\s+)?({_NAME}))?",
    re.IGNORECASE,
)
_PART: Final = re.compile(_NAME)
#: words behind a table that are no other name for it
_NO_ALIAS: Final = frozenset(
    (
        *("where", "group", "order", "having", "limit", "offset", "window", "qualify", "fetch", "for", "lateral"),
        *("join", "inner", "left", "right", "full", "cross", "natural", "semi", "anti", "asof", "positional", "on"),
        *("using", "union", "intersect", "except", "tablesample"),
    )
)


def with_attached(text: str, environment: Environment) -> tuple[str, dict[str, DataSet]]:
    """Return a query over plain names, and the data sets of those. Raises: what reading a table does."""
    found: dict[str, DataSet] = {}
    if not environment.catalogs:
        return text, found
    hidden = _hidden(text)

    def replaced(match: re.Match[str]) -> str:
        parts = _parts(match[3])
        if parts[0] not in environment.catalogs or any(begin <= match.start() < end for begin, end in hidden):
            return match[0]
        version = {} if match[4] is None else _version(match[4], match[5])
        name = ".".join(parts) + (f" {match[4]} {match[5]}".replace("'", "") if match[4] else "")
        if name not in found:
            found[name] = _read(environment, parts, version)
        alias = match[7] if match[7] and match[7].lower() not in _NO_ALIAS else None
        behind = "" if alias else match[6] or ""
        return f'{match[1]}{match[2]}"{name}" AS {alias or _quoted(parts[-1])}{behind}'

    return _TABLE.sub(replaced, text), found


def _hidden(text: str) -> list[tuple[int, int]]:
    """Return the places of strings and comments."""
    found, end = [], 0
    for piece in pieces(text):
        if is_comment(piece) or piece.startswith("'"):
            found.append((end, end + len(piece)))
        end += len(piece)
    return found


def _parts(name: str) -> list[str]:
    """Return the parts of a name: lower case unless they are quoted."""
    return [part[1:-1] if part.startswith('"') else part.lower() for part in _PART.findall(name)]


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name == name.lower() else f'"{name}"'


def _version(kind: str, value: str) -> dict[str, Any]:
    text = value.strip("'")
    if kind.upper() != "VERSION":
        return {"as_of": text}
    return {"snapshot_id": int(text)} if value.isdigit() else {"branch": text}


def _read(environment: Environment, parts: list[str], version: dict[str, Any]) -> DataSet:
    return environment.read_iceberg(".".join(parts[1:]), environment.catalogs[parts[0]], **version)


def attached_table(environment: Environment, name: str) -> DataSet | None:
    """Return the table of an attached catalog, None for another name."""
    parts = _parts(name)
    return _read(environment, parts, {}) if len(parts) > 2 and parts[0] in environment.catalogs else None


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
