from typing import Self, final

import pyarrow as pa

from engine.records.row_combiner import RowCombiner

@final
class StateCombiner(RowCombiner):
    """Merges the partial states of two binary rows of one group."""

    def __new__(cls, schema: pa.Schema, key_count: int, operations: list[int], overflow_texts: list[str]) -> Self: ...
