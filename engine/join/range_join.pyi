from collections.abc import Iterable, Iterator
from typing import Self, final

import pyarrow as pa

from engine.iomanager.spill_space import SpillSpace
from engine.join.join_spec import JoinSpec
from engine.join.range_spec import RangeSpec
from engine.records.row_batch import RowBatch

@final
class RangeJoin:
    """One subtask's join by a range, of two sorted inputs (see range_join.pyx)."""

    candidate_pairs: int
    blocks: int
    carried_rows: int
    def __new__(cls, spec: JoinSpec, where: RangeSpec, space: SpillSpace, block_bytes: int) -> Self: ...
    def join(self, left_rows: Iterable[RowBatch], right_rows: Iterable[RowBatch]) -> Iterator[pa.RecordBatch]: ...
    def close(self) -> None: ...
