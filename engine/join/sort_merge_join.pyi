from collections.abc import Iterable, Iterator, Sequence
from typing import Self, final

import pyarrow as pa

from engine.graph.plan import JoinType
from engine.iomanager.spill_space import SpillSpace
from engine.join.pair_condition import PairCondition
from engine.records.row_batch import RowBatch

@final
class SortMergeJoin:
    """One subtask's merge of two sorted inputs (see sort_merge_join.pyx)."""

    left_rows: int
    right_rows: int
    spilled_groups: int
    block_passes: int
    def __new__(
        cls,
        how: JoinType,
        left_schema: pa.Schema,
        right_schema: pa.Schema,
        left_keys: Sequence[int],
        right_keys: Sequence[int],
        output: Sequence[tuple[int, int]],
        output_schema: pa.Schema,
        space: SpillSpace,
        group_bytes: int,
        group_rows: int = 0,
        *,
        condition: PairCondition | None = None,
    ) -> Self: ...
    def join(self, left_rows: Iterable[RowBatch], right_rows: Iterable[RowBatch]) -> Iterator[pa.RecordBatch]: ...
    def close(self) -> None: ...
