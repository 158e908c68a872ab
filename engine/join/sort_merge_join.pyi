from collections.abc import Iterable, Iterator
from typing import Self, final

import pyarrow as pa

from engine.iomanager.spill_space import SpillSpace
from engine.join.join_spec import JoinSpec
from engine.records.row_batch import RowBatch

@final
class SortMergeJoin:
    """One subtask's merge of two sorted inputs (see sort_merge_join.pyx)."""

    left_rows: int
    right_rows: int
    spilled_groups: int
    block_passes: int
    def __new__(cls, spec: JoinSpec, space: SpillSpace, group_bytes: int) -> Self: ...
    def join(self, left_rows: Iterable[RowBatch], right_rows: Iterable[RowBatch]) -> Iterator[pa.RecordBatch]: ...
    def close(self) -> None: ...
