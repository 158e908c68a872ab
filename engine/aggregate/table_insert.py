"""TableInsert: the rows of one batch on their way into a group table that may be full.

    table = table_of(layout, pool, partition_count, separate_stores, force_spill)
    insert = TableInsert(table, table.open(key_columns, batch, binding))
    while not insert.until_full():              rows before insert.position are in, and the table is full
        ...                                     make room: if insert.is_stuck the last room was not enough for one row

The row that found no room twice is held beyond the limit of the pool, one group at a time.

Held by: tests/aggregate/test_hash_aggregate.py
"""

from __future__ import annotations

from engine.accumulators.aggregate_layout import AggregateLayout
from engine.aggregate.aggregate_spec import FORCED_GROUPS
from engine.aggregate.group_input import GroupInput
from engine.aggregate.group_table import GroupTable
from engine.errors import MemoryBudgetError
from engine.memory.page_pool import PagePool

_RESERVED_AFTER = 1
_ENDS_AFTER = 2


def table_of(
    layout: AggregateLayout, pool: PagePool, partition_count: int, separate_stores: bool, force_spill: bool
) -> GroupTable:
    """Return an empty table for the groups of a layout. Raises: MemoryBudgetError."""
    return GroupTable(
        pool,
        layout.key_schema,
        layout.empty_states,
        layout.operations,
        layout.overflow_texts,
        partition_count,
        separate_stores,
        FORCED_GROUPS if force_spill else 0,
    )


class TableInsert:
    """Puts rows into a table, in order."""

    def __init__(self, table: GroupTable, opened: GroupInput) -> None:
        self._table = table
        self._opened = opened
        self._failures = 0
        #: rows that are in
        self.position = 0

    @property
    def is_stuck(self) -> bool:
        """Whether the last step took no row."""
        return self._failures > 0

    def until_full(self) -> bool:
        """Put rows in until the table is full; return whether all are in.

        Raises: MemoryBudgetError: the machine has no memory for a group; DataError: a sum overflows.
        """
        reached = self._table.add(self._opened, self.position, self._failures > _RESERVED_AFTER)
        self._failures = 0 if reached > self.position else self._failures + 1
        if self._failures > _ENDS_AFTER:
            raise MemoryBudgetError("the machine has no memory for a group of an aggregate")
        self.position = reached
        return reached == self._opened.row_count
