from collections.abc import Sequence
from typing import final

import pyarrow as pa

@final
class SideBySide:
    def __init__(self, names: Sequence[str] = ()) -> None: ...
    def of(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch: ...
