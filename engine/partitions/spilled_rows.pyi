from collections.abc import Generator
from typing import Self, final

import pyarrow as pa

from engine.iomanager.block_reader import BlockReader
from engine.iomanager.spill_writer import SpillWriter
from engine.memory.page_pool import PagePool
from engine.memory.value_stores import ValueOwner
from engine.partitions.partition_files import PartitionFiles

@final
class SpilledRows:
    """Batches as binary rows, to and from spill files."""

    def __new__(cls, schema: pa.Schema, key_count: int, pool: PagePool | None) -> Self: ...
    def keep_outside(self, owner: ValueOwner) -> None: ...
    def write(self, batch: pa.RecordBatch, writer: SpillWriter) -> None: ...
    def scatter(self, batch: pa.RecordBatch, files: PartitionFiles, level: int, partition_count: int) -> None: ...
    def read(self, reader: BlockReader, level: int = 0, part: int = 0, parts: int = 1) -> Generator[pa.RecordBatch]: ...
    def close(self) -> None: ...
