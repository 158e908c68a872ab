"""Grouping sets: several group_by over the same rows, and their union.

    group_by("a", "b").rollup()      sets (a, b), (a), ()           totals of the first keys, and of all
    group_by("a", "b").cube()        sets (a, b), (a), (b), ()      of each choice of keys
    group_by("a", "b").grouping_sets(["a", "b"], ["b"])             of those that are named

Held by: tests/integration/test_shapes.py
Held by: tests/sql/test_groups.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final, Generic, TypeVar

from engine.api.calls import Calls
from engine.api.grouped import group_outputs
from engine.api.projections import column_names
from engine.errors import SchemaError
from engine.graph.expression import NamedExpression
from engine.graph.plan import GroupBy
from engine.lowering.said_nodes import lowered

D = TypeVar("D", bound=Calls)

#: largest number of sets in a cube, all computed by one job
_SETS_MAX: Final = 64


class GroupingSets(Generic[D]):
    """Sets of keys, of each of which there are to be groups."""

    def __init__(
        self, data: D, keys: tuple[NamedExpression, ...], sets: Sequence[frozenset[int]], number: str | None
    ) -> None:
        self._data = data
        self._keys = keys
        self._sets = sets
        self._number = number
        if len(sets) > _SETS_MAX:
            raise SchemaError(f"{len(sets)} grouping sets, an aggregate each; at most {_SETS_MAX}")

    def agg(self, *aggregates: Any, **named: Any) -> D:
        """Return a row for each group of each set: the keys, null where the set has them not, and the aggregates."""
        names = [one.name for one in self._keys]
        outputs = group_outputs(names, aggregates, named)
        sets = tuple(tuple(name for place, name in enumerate(names) if place in wanted) for wanted in self._sets)
        said = GroupBy(self._keys, tuple(outputs), sets, self._number or "")
        return self._data._with(lowered(said, (self._data._node,)))


def rollup_sets(keys: Sequence[str]) -> list[frozenset[int]]:
    """Return the sets of a rollup: all keys, then one less each time."""
    return [frozenset(range(count)) for count in range(len(keys), -1, -1)]


def cube_sets(keys: Sequence[str]) -> list[frozenset[int]]:
    """Return the sets of a cube: each choice of keys, larger ones first."""
    if len(keys) > _SETS_MAX.bit_length():
        raise SchemaError(f"cube: {len(keys)} keys make {2 ** len(keys)} sets; name those that are wanted")
    return [frozenset(chosen) for count in range(len(keys), -1, -1) for chosen in combinations(range(len(keys)), count)]


def named_sets(keys: Sequence[str], sets: Sequence[Any]) -> list[frozenset[int]]:
    """Return sets that are given by names of keys."""
    return list(_named_sets(list(keys), sets))


def _named_sets(keys: list[str], sets: Sequence[Any]) -> Iterator[frozenset[int]]:
    if not sets:
        raise SchemaError("grouping_sets: name at least one set of keys, as in grouping_sets(['a', 'b'], ['a'], [])")
    for one in sets:
        names = column_names(one, "grouping_sets")
        for name in names:
            if name not in keys:
                raise SchemaError(f"grouping_sets: {name!r} is no key of group_by({', '.join(keys)})")
        yield frozenset(map(keys.index, names))
