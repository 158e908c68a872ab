from typing import final

from engine.accumulators.aggregate_layout import AggregateLayout
from engine.aggregate.group_input import GroupInput
from engine.aggregate.group_table import GroupTable
from engine.memory.page_pool import PagePool

def table_of(
    layout: AggregateLayout, pool: PagePool, partition_count: int, separate_stores: bool, force_spill: bool
) -> GroupTable: ...

@final
class TableInsert:
    """Puts rows into a table, in order."""

    position: int
    def __init__(self, table: GroupTable, opened: GroupInput) -> None: ...
    @property
    def is_stuck(self) -> bool: ...
    def until_full(self) -> bool: ...
