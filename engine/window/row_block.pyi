from collections.abc import Sequence
from typing import Self, final

import pyarrow as pa

@final
class RowBlock:
    """Rows [start, stop) of the sorted input."""

    start: int
    stop: int
    batch: pa.RecordBatch
    def __new__(cls, start: int, batch: pa.RecordBatch, columns: Sequence[pa.Array]) -> Self: ...
    def levels_array(self) -> pa.Array: ...

@final
class Positions:
    """An int64 for each row of a block."""

    start: int
    count: int
    buffer: pa.Buffer
    @property
    def last(self) -> int: ...
    def array(self) -> pa.Array: ...
