from typing import Self, final

import pyarrow as pa

from engine.window.row_block import Positions, RowBlock

@final
class FrameQuantile:
    """A quantile over the frame of each row."""

    end_row: int
    start_row: int
    def __new__(
        cls, share: float, column: int, data_type: pa.DataType, slides: bool, most_bytes: int, name: str
    ) -> Self: ...
    def enter(self, block: RowBlock) -> None: ...
    def begin(self, block: RowBlock) -> None: ...
    def run(
        self,
        row: int,
        block: RowBlock,
        partitions: Positions,
        starts: Positions,
        ends: Positions,
        entering: RowBlock,
        leaving: RowBlock,
    ) -> int: ...
    def finish(self) -> pa.Array: ...
