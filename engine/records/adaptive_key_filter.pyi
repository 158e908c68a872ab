from collections.abc import Sequence
from typing import final

import pyarrow as pa

from engine.records.key_filter import KeyFilter
from engine.records.row_mask import Mask
from engine.records.top_keys import TopTest

TRIAL_ROWS: int

@final
class AdaptiveKeyFilter:
    """A filter of one column, as one reader uses it."""

    column: str
    filter: KeyFilter
    is_on: bool
    rows_dropped: int
    def __init__(self, column: str, key_filter: KeyFilter) -> None: ...
    def mask_of(self, batch: pa.RecordBatch, mask: Mask | None = None) -> Mask: ...

def mask_of(
    tests: Sequence[AdaptiveKeyFilter | TopTest], batch: pa.RecordBatch, mask: Mask | None = None
) -> Mask | None: ...
