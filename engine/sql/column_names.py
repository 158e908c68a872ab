"""Names for columns that SQL counts: each column of a query's relations has one that no other column has.

    FROM nation AS a, nation AS b      n_name ─► n_name      n_name ─► n_name#2

Data sets know columns by name, and joins want the names of both sides to differ. Substrait knows columns by position
and may have one several times. A relation is a data set and, for each position, the name of the column that is there:
what a query leaves out or puts in another order costs no projection. Where a whole query has two columns ``a`` the
second one is ``a_1``, as in DuckDB.

Held by: tests/sql/test_joins.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.api.data_set import DataSet


class Relation(NamedTuple):
    """A data set, and the names of the columns that a query sees, by position; the data set may have more."""

    data: DataSet
    columns: tuple[str, ...]


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
