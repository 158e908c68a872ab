from typing import Self, final

import pyarrow as pa

from engine.window.group_bounds import Blocks
from engine.window.row_block import Positions, RowBlock

@final
class RangeBound:
    """The bounds of frames at a distance in the order key's values."""

    def __new__(
        cls,
        column: int,
        data_type: pa.DataType,
        offset: int | float,
        is_end: bool,
        threshold: int,
        descending: bool,
        nulls_last: bool,
    ) -> Self: ...
    def of(self, block: RowBlock, partitions: Positions, queue: Blocks) -> Positions | None: ...
