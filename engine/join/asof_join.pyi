from collections.abc import Iterable, Iterator
from typing import Self, final

import pyarrow as pa

from engine.join.asof_choice import AsofRule
from engine.join.join_spec import JoinSpec
from engine.records.row_batch import RowBatch

@final
class AsofJoin:
    """One subtask's as-of join of two sorted inputs (see asof_join.pyx)."""

    left_rows: int
    right_rows: int
    def __new__(cls, spec: JoinSpec, rule: AsofRule, held_bytes: int) -> Self: ...
    def join(self, left_rows: Iterable[RowBatch], right_rows: Iterable[RowBatch]) -> Iterator[pa.RecordBatch]: ...
    def close(self) -> None: ...
