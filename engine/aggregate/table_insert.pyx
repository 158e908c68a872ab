"""TableInsert: the rows of one batch on their way into a group table that may be full.

    table = table_of(layout, pool, partition_count, separate_stores, force_spill)
    insert = TableInsert(table, table.open(key_columns, batch, binding))
    while not insert.until_full():              rows before insert.position are in, and the table is full
        ...                                     make room: if insert.is_stuck the last room was not enough for one row

The row that found no room twice is held beyond the limit of the pool, one group at a time.

Held by: tests/aggregate/test_hash_aggregate.py
"""

cimport cython
from libc.stdint cimport int64_t

from engine.aggregate.group_input cimport GroupInput
from engine.aggregate.group_table cimport GroupTable
from engine.aggregate.aggregate_spec import FORCED_GROUPS
from engine.errors import MemoryBudgetError

cdef enum:
    RESERVED_AFTER = 1
    ENDS_AFTER = 2


def table_of(layout, pool, partition_count, bint separate_stores, bint force_spill):
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


@cython.final
cdef class TableInsert:
    """Puts rows into a table, in order."""

    cdef GroupTable _table
    cdef GroupInput _opened
    cdef int _failures
    #: rows that are in
    cdef readonly int64_t position

    def __init__(self, GroupTable table not None, GroupInput opened not None):
        self._table, self._opened = table, opened

    @property
    def is_stuck(self):
        """Whether the last step took no row."""
        return self._failures > 0

    def until_full(self):
        """Put rows in until the table is full; return whether all are in.

        Raises: MemoryBudgetError: the machine has no memory for a group; DataError: a sum overflows.
        """
        cdef int64_t reached = self._table.add(self._opened, self.position, self._failures > RESERVED_AFTER)
        self._failures = 0 if reached > self.position else self._failures + 1
        if self._failures > ENDS_AFTER:
            raise MemoryBudgetError("the machine has no memory for a group of an aggregate")
        self.position = reached
        return reached == self._opened.row_count
