from collections.abc import Iterator, Sequence
from typing import Self, final

import pyarrow as pa

from engine.memory.page_pool import PagePool
from engine.records.row_batch import RowBatch
from engine.records.row_combiner import RowCombiner
from engine.sort.sorted_runs import SortedRuns

@final
class MergedBatches:
    """Rows of one range of many sorted runs, in order, as Arrow batches."""

    rows_out: int
    bytes_in: int
    def __new__(
        cls,
        sources: Sequence[SortedRuns],
        pool: PagePool,
        lower: bytes | None = None,
        upper: bytes | None = None,
        limit: int | None = None,
        combiner: RowCombiner | None = None,
    ) -> Self: ...
    def batches(self, max_rows: int = 8192, max_bytes: int = 1 << 20) -> Iterator[pa.RecordBatch]: ...
    def row_batches(self, max_rows: int = 8192, max_bytes: int = 1 << 20) -> Iterator[RowBatch]: ...
    def close(self) -> None: ...
