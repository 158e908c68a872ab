from collections.abc import Iterator
from typing import Self, final

import pyarrow as pa

from engine.aggregate.group_table import GroupTable

@final
class GroupScan:
    """The groups of one store of a group table as Arrow batches."""

    group_count: int
    def __new__(
        cls,
        table: GroupTable,
        store: int,
        partition: int,
        schema: pa.Schema,
        columns: list[tuple[int, int]],
        max_rows: int,
        max_bytes: int,
    ) -> Self: ...
    def __iter__(self) -> Iterator[pa.RecordBatch]: ...
    def __next__(self) -> pa.RecordBatch: ...
