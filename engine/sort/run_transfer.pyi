from typing import Self, final

import pyarrow as pa
from typing_extensions import Buffer

from engine.graph.sort_key import SortKey
from engine.iomanager.spill_space import SpillSpace
from engine.memory.segment import MemorySegment
from engine.sort.sorted_runs import SortedRuns

@final
class RunReceiver:
    rows: int
    def __new__(cls, schema: pa.Schema, keys: tuple[SortKey, ...], space: SpillSpace, block_size: int) -> Self: ...
    def add_page(self, segment: MemorySegment, used_bytes: int) -> None: ...
    def add_row(self, row: Buffer) -> None: ...
    def end_run(self, producer: int = 0) -> None: ...
    def take_runs(self) -> SortedRuns: ...
