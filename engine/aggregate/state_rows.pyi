from collections.abc import Iterator
from typing import Self, final

import pyarrow as pa

from engine.iomanager.spill_reader import SpillReader
from engine.iomanager.spill_writer import SpillWriter
from engine.memory.page_pool import PagePool
from engine.memory.value_stores import ValueOwner

@final
class StateRows:
    """Partial states as binary rows, to and from spill files."""

    def __new__(cls, schema: pa.Schema, pool: PagePool) -> Self: ...
    def keep_outside(self, owner: ValueOwner) -> None: ...
    def write(self, batch: pa.RecordBatch, writer: SpillWriter) -> None: ...
    def read(self, reader: SpillReader) -> Iterator[pa.RecordBatch]: ...
    def close(self) -> None: ...
