"""Names of a query: which column of which table one means.

    FROM nation AS a, nation AS b      a.n_name ─► n_name      b.n_name ─► n_name#2

A column has the name that the query knows and another one in the data set, which no other column of the query has.
Names are found in any case; where two differ by case alone, the one as it is written is meant, or none. Where a whole
query has two columns ``a`` the second one is ``a_1``, as in DuckDB.

Held by: tests/sql/test_scopes.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, TypeVar

T = TypeVar("T", "Named", "ScopeTable")


class ColumnNames:
    """Generates names within one query."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """Return the name, with a number behind it where it was given before."""
        while True:
            times = self._given[name] = self._given.get(name, 0) + 1
            if times == 1:
                return name
            numbered = f"{name}#{times}"
            if numbered not in self._given:
                self._given[numbered] = 1
                return numbered


def different_names(names: Sequence[str]) -> list[str]:
    """Return names of which no two are the same: "a", "b", "a" are "a", "b", "a_1"."""
    found: dict[str, None] = {}
    for name in names:
        own, number = name, 0
        while own in found or (number and own in names):
            number += 1
            own = f"{name}_{number}"
        found[own] = None
    return list(found)


class AmbiguousNameError(Exception):
    """A name that several columns have."""


class Named(NamedTuple):
    """A column: the name that the query knows, and the one that it has in the data set."""

    name: str
    column: str


@dataclass(frozen=True)
class ScopeTable:
    """A table of FROM. ``hidden``: columns that ``*`` leaves out, keys of USING that the other side has too."""

    name: str
    columns: tuple[Named, ...]
    hidden: frozenset[str] = frozenset()

    @cached_property
    def by_name(self) -> dict[str, list[Named]]:
        """The columns by their names in lower case."""
        found: dict[str, list[Named]] = {}
        for one in self.columns:
            found.setdefault(one.name.lower(), []).append(one)
        return found

    def named(self, name: str) -> list[Named]:
        """Return the columns of a name."""
        return matching(name, self.by_name.get(name.lower(), ()))


class Scope(NamedTuple):
    """The tables of a FROM clause; ``merged``: keys of USING, by their name in lower case, and what they stand for."""

    tables: tuple[ScopeTable, ...] = ()
    merged: Mapping[str, Named] = MappingProxyType({})

    def __add__(self, other: Scope) -> Scope:  # type: ignore[override]
        return Scope(self.tables + other.tables, {**self.merged, **other.merged})

    @property
    def columns(self) -> Iterator[Named]:
        """The columns that ``*`` means, in its order."""
        seen: set[str] = set()
        for table in self.tables:
            for one in table.columns:
                if one.column in table.hidden:
                    continue
                merged = self.merged.get(one.name.lower())
                if merged is None:
                    yield one
                elif one.name.lower() not in seen:
                    seen.add(one.name.lower())
                    yield merged

    def table(self, name: str) -> ScopeTable | None:
        """Return the table of a name, None where there is none."""
        found = matching(name, self.tables)
        return found[0] if found else None

    def column(self, name: str) -> Named | None:
        """Return the column of a name without a table. Raises: AmbiguousNameError."""
        lower = name.lower()
        if lower in self.merged:
            return self.merged[lower]
        among = (one for table in self.tables for one in table.by_name.get(lower, ()) if one.column not in table.hidden)
        found = matching(name, among)
        if len(found) > 1:
            raise AmbiguousNameError(name)
        return found[0] if found else None


def matching(name: str, among: Iterable[T]) -> list[T]:
    """Return tables or columns of a name, in any case; of several that differ by case, those as it is written."""
    lower = name.lower()
    found = [one for one in among if one.name.lower() == lower]
    exact = [one for one in found if one.name == name]
    return exact if len(found) > 1 and exact else found


def own_columns(names: ColumnNames, columns: Sequence[str]) -> tuple[Named, ...]:
    """Return columns under names that no other column of the query has."""
    return tuple(Named(name, names.unique(name)) for name in columns)
