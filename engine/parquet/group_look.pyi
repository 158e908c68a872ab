from collections.abc import Callable

import pyarrow as pa

from engine.parquet.fetched_bytes import FetchedBytes
from engine.parquet.group_reader import GroupChunks, GroupReader
from engine.records.side_by_side import SideBySide

class GroupLook:
    width: float
    width_of_others: float
    def __init__(
        self,
        reader: GroupReader,
        others: GroupReader | None,
        mask: Callable[[pa.RecordBatch], pa.BooleanArray | None] | None,
        sides: SideBySide,
        columns: list[str],
    ) -> None: ...
    def read(
        self, source: int | FetchedBytes, chunks: GroupChunks, others: GroupChunks | None, rows: int
    ) -> pa.RecordBatch | None: ...
