from collections.abc import Iterator
from typing import Self, final

import pyarrow as pa

from engine.join.asof_choice import AsofRule
from engine.join.join_spec import JoinSpec
from engine.records.row_pages import RowPages

#: bytes that it takes for a row of either side
SCRATCH_BYTES: int

@final
class AsofGroups:
    """The as-of join of rows in any order that lie in memory (see asof_groups.pyx)."""

    def __new__(cls, spec: JoinSpec, rule: AsofRule) -> Self: ...
    def reserve(self, rows: int) -> None: ...
    def join(self, left: RowPages, right: RowPages | None) -> Iterator[pa.RecordBatch]: ...
    def close(self) -> None: ...
