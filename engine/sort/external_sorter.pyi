from collections.abc import Iterator
from typing import Self, final

import pyarrow as pa
from typing_extensions import Buffer

from engine.graph.sort_key import SortKey
from engine.graph.window import GroupLimit
from engine.iomanager.spill_space import SpillSpace
from engine.memory.page_pool import PagePool
from engine.memory.segment import MemorySegment
from engine.records.row_batch import RowBatch
from engine.records.row_combiner import RowCombiner
from engine.sort.sorted_runs import SortedRuns

@final
class ExternalSorter:
    """Sorts more rows than fit in its pages."""

    schema: pa.Schema
    rows_in: int
    background_ns: int
    waited_ns: int
    @property
    def spilled_bytes(self) -> int: ...
    @property
    def run_count(self) -> int: ...
    def __new__(
        cls,
        schema: pa.Schema,
        keys: tuple[SortKey, ...],
        pool: PagePool,
        space: SpillSpace,
        limit: int | None = None,
        force_spill: bool = False,
        reader_count: int = 1,
        combiner: RowCombiner | None = None,
    ) -> Self: ...
    def cut_groups(self, limit: GroupLimit) -> None: ...
    def add_batch(self, batch: pa.RecordBatch) -> None: ...
    def add_page(self, segment: MemorySegment, used_bytes: int) -> None: ...
    def add_rows(self, buffer: Buffer) -> None: ...
    def finish(self) -> None: ...
    def batches(self, max_rows: int = 8192, max_bytes: int = 1 << 20) -> Iterator[pa.RecordBatch]: ...
    def row_batches(self, max_rows: int = 8192, max_bytes: int = 1 << 20) -> Iterator[RowBatch]: ...
    def take_runs(self) -> SortedRuns: ...
    def close(self) -> None: ...
