from collections.abc import Sequence
from typing import Self, final

import pyarrow as pa

KEYS_MAX: int

@final
class KeyLevels:
    """The key in which each row of sorted batches differs from the row before it."""

    def __new__(cls, keys: Sequence[str]) -> Self: ...
    def of(self, batch: pa.RecordBatch) -> pa.Array: ...
