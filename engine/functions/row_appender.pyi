from collections.abc import Sequence

import pyarrow as pa

from engine.functions.row import Row
from engine.records.value_writer import ColumnTarget

class RowAppender:
    targets: list[ColumnTarget]
    names: tuple[str, ...]
    rows: int
    limit: int
    taken_bytes: int
    places: list[tuple[int, Sequence[Row]]]
    def __init__(self, schema: pa.Schema, limit: int, values_only: bool = False) -> None: ...
    def append(self, value: object, place: Sequence[Row], *, check: bool) -> None: ...
    def finish(self) -> pa.RecordBatch: ...
