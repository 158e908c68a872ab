from collections.abc import Callable, Iterator
from typing import Protocol

import pyarrow as pa

from engine.parquet.fetched_bytes import FetchedBytes
from engine.parquet.footers import GroupPlan
from engine.parquet.group_reader import GroupReader
from engine.parquet.group_runs import GroupRuns
from engine.parquet.scan_memory import ScanMemory
from engine.records.row_mask import Mask
from engine.records.side_by_side import SideBySide

PARQUET_BATCH_ROWS_MAX: int

class GroupLook:
    width: float
    width_of_others: float
    groups_read: int
    rows_read: int
    def __init__(
        self,
        reader: GroupReader,
        others: GroupReader | None,
        mask: Callable[[pa.RecordBatch], pa.BooleanArray | Mask | None] | None,
        sides: SideBySide,
        columns: list[str],
        is_opened: bool = False,
    ) -> None: ...
    def read(
        self, source: int | FetchedBytes, plans: list[GroupPlan], rows_together: int, kept_max: int
    ) -> pa.RecordBatch | None: ...

class Streams(Protocol):
    @property
    def comes_as_wanted(self) -> bool: ...
    def streamed(self, group: int) -> Iterator[pa.RecordBatch]: ...
    def arranged(self, batch: pa.RecordBatch) -> pa.RecordBatch: ...

class GroupLooks:
    runs: GroupRuns
    def __init__(
        self,
        memory: ScanMemory,
        source: int | FetchedBytes,
        plans: dict[int, GroupPlan | None],
        plan: Callable[[int], GroupPlan | None],
        new_look: Callable[[], GroupLook],
        columns: list[str],
    ) -> None: ...
    def let_go(self) -> None: ...
    def rows(self, scan: Streams, group: int, end: int) -> Iterator[pa.RecordBatch]: ...
