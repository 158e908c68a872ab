"""Properties of a result: how its rows are spread over subtasks, and in which order they are inside one.

    GlobalProperties(partitioning, key_sets)     RANDOM_PARTITIONED   rows are spread, nothing is known
                                                 HASH_PARTITIONED     equal keys are in one subtask, by row hash
                                                 KEY_GROUP_PARTITIONED  the same, by key group (key_by)
                                                 FILE_PARTITIONED     the same, as files have it: no exchange does that
                                                 FULL_REPLICATION     every subtask has all rows
    LocalProperties(order)                       sort keys, () when unordered

One subtask alone has every property that is asked for. ``key_sets`` holds the alternatives by which a result is hash
partitioned: after an inner join the left and the right keys, column by column the same values. Operators carry
properties on where they keep the columns: a projection renames them, a Python function loses them.

These are what a result has. What an operator needs is a question (``is_hashed_by``, ``groups``), and the caller
nothing asks no question: Flink's ANY_PARTITIONING, a property that no result has, is not needed.

Source: Flink's GlobalProperties, LocalProperties and PartitioningProperty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from engine.graph.expression import ColumnRef, NamedExpression
from engine.graph.sort_key import SortKey


class Partitioning(StrEnum):
    """The kinds of partitioning."""

    RANDOM_PARTITIONED = "RANDOM_PARTITIONED"
    HASH_PARTITIONED = "HASH_PARTITIONED"
    KEY_GROUP_PARTITIONED = "KEY_GROUP_PARTITIONED"
    FILE_PARTITIONED = "FILE_PARTITIONED"
    FULL_REPLICATION = "FULL_REPLICATION"


class GlobalProperties(msgspec.Struct, frozen=True):
    """The partitioning of a result over the subtasks that computed it."""

    partitioning: Partitioning = Partitioning.RANDOM_PARTITIONED
    key_sets: tuple[tuple[str, ...], ...] = ()

    def is_hashed_by(self, keys: tuple[str, ...]) -> bool:
        """Whether rows lie where a hash exchange by exactly these keys, in this order, would put them."""
        return self.partitioning is Partitioning.HASH_PARTITIONED and keys in self.key_sets

    def groups(self, keys: tuple[str, ...]) -> bool:
        """Whether rows with equal ``keys`` are in one subtask: partitioned by some of them."""
        return any(set(key_set) <= set(keys) for key_set in self.key_sets)

    def kept(self, names: Iterable[str]) -> GlobalProperties:
        """Return the properties that hold when only those columns remain."""
        remaining = set(names)
        return self._by(key_set for key_set in self.key_sets if set(key_set) <= remaining)

    def projected(self, expressions: Iterable[NamedExpression]) -> GlobalProperties:
        """Return the properties that hold after a projection, under the new names."""
        renamed: dict[str, str] = {}
        for named in expressions:
            if isinstance(named.expression, ColumnRef):
                renamed.setdefault(named.expression.name, named.name)
        return self.renamed(renamed)

    def renamed(self, names: Mapping[str, str]) -> GlobalProperties:
        """Return the properties that hold when columns are renamed and those without a name here are dropped."""
        return self._by(
            tuple(names[key] for key in key_set) for key_set in self.key_sets if all(key in names for key in key_set)
        )

    def _by(self, key_sets: Iterable[tuple[str, ...]]) -> GlobalProperties:
        kept = tuple(dict.fromkeys(key_sets))
        return GlobalProperties(self.partitioning, kept) if kept else RANDOM


RANDOM = GlobalProperties()


def hashed_by(*key_sets: tuple[str, ...]) -> GlobalProperties:
    """Return the properties of rows hashed by any of these key sets; of none: spread at random."""
    if not key_sets:
        return RANDOM
    return GlobalProperties(Partitioning.HASH_PARTITIONED, tuple(dict.fromkeys(key_sets)))


def key_grouped_by(keys: tuple[str, ...]) -> GlobalProperties:
    """Return the properties of rows partitioned by the key groups of some columns."""
    return GlobalProperties(Partitioning.KEY_GROUP_PARTITIONED, (keys,))


def grouped_in_files(keys: tuple[str, ...]) -> GlobalProperties:
    """Return the properties of rows whose equal values of some columns are in one file, which one subtask reads."""
    return GlobalProperties(Partitioning.FILE_PARTITIONED, (keys,))


class LocalProperties(msgspec.Struct, frozen=True):
    """Order inside a subtask; with parallelism 1 it is the total order.

    ``is_total``: the rows of a subtask come before those of the next one.
    """

    order: tuple[SortKey, ...] = ()
    is_total: bool = False
