from collections.abc import Callable

import pyarrow as pa

from engine.parquet.fetched_bytes import FetchedBytes
from engine.parquet.footers import GroupPlan
from engine.parquet.group_reader import GroupReader
from engine.parquet.group_runs import GroupRuns
from engine.records.row_mask import Mask
from engine.records.side_by_side import SideBySide

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
    def read_run(
        self, source: int | FetchedBytes, plans: list[GroupPlan], runs: GroupRuns, rows_max: float, row_bytes: float
    ) -> pa.RecordBatch | None: ...
