from collections.abc import Sequence
from typing import final

import pyarrow as pa

from engine.records.row_mask import Mask

@final
class KeyFilter:
    """A filter of the values of a key column (see key_filter.pyx)."""

    data_type: pa.DataType
    value_count: int
    size_bytes: int
    is_exact: bool
    def mask(self, array: pa.Array) -> Mask: ...
    def mask_of(self, batch: pa.RecordBatch, column: bytes, within: Mask | None = None) -> Mask | None: ...
    def may_lie_between(self, lows: pa.Array, highs: pa.Array) -> list[bool]: ...

def key_filter(arrays: Sequence[pa.Array], bytes_max: int, exact_bytes_max: int = ...) -> KeyFilter | None: ...
def merged(filters: Sequence[KeyFilter], bytes_max: int, exact_bytes_max: int = ...) -> KeyFilter | None: ...
