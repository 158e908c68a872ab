from collections.abc import Sequence
from typing import final

import pyarrow as pa

def chosen_columns(batch: pa.RecordBatch, places: list[int], schema: pa.Schema) -> pa.RecordBatch | None: ...

@final
class SideBySide:
    def __init__(self, names: Sequence[str] = ()) -> None: ...
    def of(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch: ...
