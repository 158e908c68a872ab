from typing import Self, final

import pyarrow as pa

from engine.window.row_block import Positions, RowBlock

@final
class Running:
    """A product, or a mean, of all rows of a partition up to each."""

    def __new__(cls, factor: float, flags: int) -> Self: ...
    def of(self, block: RowBlock, column: int, starts: Positions) -> pa.Array: ...
