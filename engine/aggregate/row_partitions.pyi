from collections.abc import Callable, Iterator

import pyarrow as pa

from engine.aggregate.partition_files import PartitionFiles
from engine.memory.page_pool import PagePool
from engine.records.row_codec import RowCodec

class RowPartitions:
    partition_count: int
    level: int
    page_limit: int
    pages_held: int

    def __new__(
        cls,
        codec: RowCodec,
        key_count: int,
        pool: PagePool,
        files: PartitionFiles,
        partition_count: int,
        level: int,
        page_limit: int,
    ) -> RowPartitions: ...
    def add(self, batch: pa.RecordBatch, start: int) -> int: ...
    def on_full(self, when_full: Callable[[], None], spill: Callable[[int], None] | None = None) -> None: ...
    def spill(self, partition: int) -> None: ...
    def spill_largest(self) -> bool: ...
    def take(self, partition: int) -> KeptRows | None: ...
    def put(self, partition: int, kept: KeptRows) -> None: ...
    def finish(self) -> list[KeptRows]: ...
    def close(self) -> None: ...

class KeptRows:
    row_count: int
    page_count: int
    is_merged: bool

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...
    def __next__(self) -> pa.RecordBatch: ...
    def delete(self) -> None: ...
