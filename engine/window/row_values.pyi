from typing import Self, final

import pyarrow as pa

from engine.window.group_bounds import Blocks
from engine.window.row_block import Positions

@final
class RowValues:
    """A column's values at other rows, which only move forward."""

    def __new__(cls, column: int) -> Self: ...
    def at(self, rows: Positions, queue: Blocks) -> pa.Array: ...
