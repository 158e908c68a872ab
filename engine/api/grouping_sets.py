"""Grouping sets: several group_by over the same rows, and their union.

    group_by("a", "b").rollup()      sets (a, b), (a), ()           totals of the first keys, and of all
    group_by("a", "b").cube()        sets (a, b), (a), (b), ()      of each choice of keys
    group_by("a", "b").grouping_sets(["a", "b"], ["b"])             of those that are named

    a, b (null where they are not in the set), the number of the set where it is wanted, the aggregates

The number of a set has a bit for each key, the first key the highest, that is 1 where the key is not in the set: what
SQL's ``grouping(a, b)`` is. It tells a total from the group of a null.

Held by: tests/integration/test_shapes.py
Held by: tests/sql/test_groups.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, Generic, TypeVar

import pyarrow as pa

from engine.api.expressions import col, lit
from engine.api.grouped import GroupedDataSet
from engine.api.projections import column_names
from engine.api.relational_calls import RelationalCalls
from engine.errors import SchemaError

D = TypeVar("D", bound=RelationalCalls)

#: type of a set's number, by the number of keys
_NUMBER_TYPES: Final = ((8, pa.uint8()), (16, pa.uint16()), (32, pa.uint32()), (64, pa.uint64()))
#: largest number of sets in a cube, all computed by one job
_SETS_MAX: Final = 64


class GroupingSets(Generic[D]):
    """Sets of keys, of each of which there are to be groups."""

    def __init__(self, data: D, keys: Sequence[str], sets: Sequence[frozenset[int]], number: str | None) -> None:
        self._data = data
        self._keys = list(keys)
        self._sets = sets
        self._number = number
        if len(sets) > _SETS_MAX:
            raise SchemaError(f"{len(sets)} grouping sets, an aggregate each; at most {_SETS_MAX}")

    def agg(self, *aggregates: Any, **named: Any) -> D:
        """Return a row for each group of each set: the keys, null where the set has them not, and the aggregates."""
        parts = [self._one(wanted, aggregates, named) for wanted in self._sets]
        return parts[0].union(*parts[1:])

    def _one(self, wanted: frozenset[int], aggregates: tuple[Any, ...], named: Mapping[str, Any]) -> D:
        own = [key for index, key in enumerate(self._keys) if index in wanted]
        if aggregates or named:
            groups = GroupedDataSet(self._data._node, own, self._data._with).agg(*aggregates, **named)
        else:
            # a set without keys and aggregates is one row where there are any
            groups = self._data.select(own).distinct() if own else self._data.limit(1)
        made = groups.columns[len(own) :] if aggregates or named else []
        columns = [
            col(key) if index in wanted else lit(None, self._data.schema.field(key).type).alias(key)
            for index, key in enumerate(self._keys)
        ]
        if self._number is not None:
            columns.append(lit(self._left_out(wanted), self._number_type).alias(self._number))
        return groups.select([*columns, *map(col, made)])

    def _left_out(self, wanted: frozenset[int]) -> int:
        return sum(1 << (len(self._keys) - 1 - index) for index in range(len(self._keys)) if index not in wanted)

    @property
    def _number_type(self) -> pa.DataType:
        return next(one for bits, one in _NUMBER_TYPES if len(self._keys) <= bits)


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
