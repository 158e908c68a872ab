from typing import Self, final

import pyarrow as pa

from engine.aggregate.group_input import GroupInput, StateBinding
from engine.memory.page_pool import PagePool
from engine.memory.value_stores import ValueOwner

@final
class GroupTable:
    """A hash table of groups on pages of a PagePool."""

    field_count: int
    store_count: int
    partition_count: int
    level: int
    group_count: int
    groups_made: int
    frozen: bool
    def __new__(
        cls,
        pool: PagePool,
        key_schema: pa.Schema,
        states: pa.RecordBatch,
        operations: list[int],
        overflow_texts: list[str],
        partition_count: int,
        separate_stores: bool,
        group_limit: int,
    ) -> Self: ...
    @property
    def dense_layouts(self) -> int: ...
    def bind(self, operations: list[int], columns: list[int]) -> StateBinding: ...
    def open(self, key_columns: list[int], batch: pa.RecordBatch, binding: StateBinding) -> GroupInput: ...
    def keep_outside(self, owner: ValueOwner) -> None: ...
    def add(self, opened: GroupInput, start: int, reserved: bool) -> int: ...
    def store_sizes(self) -> list[tuple[int, int]]: ...
    def drop(self, stores: list[int], go_on: bool = True) -> None: ...
    def reset(self, level: int, frozen: bool = False, expected_groups: int = -1) -> None: ...
    def seal(self) -> None: ...
    def close(self) -> None: ...
