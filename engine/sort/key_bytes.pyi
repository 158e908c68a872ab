from collections.abc import Sequence
from typing import Self, final

import pyarrow as pa

from engine.graph.sort_key import SortKey

@final
class KeyBytes:
    """The sort keys of a row as bytes that compare as the rows do."""

    def __new__(cls, schema: pa.Schema, keys: Sequence[SortKey]) -> Self: ...
    def of_batch(self, batch: pa.RecordBatch) -> list[bytes]: ...
