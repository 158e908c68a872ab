"""Python's view of the comparators: they are made here and used from Cython (comparator.pxd)."""

from collections.abc import Sequence
from typing import final

from engine.graph.sort_key import SortKey
from engine.records.row_codec import RowCodec

@final
class KeyEquality:
    """Equality of the key columns of two row schemas."""

    def __new__(
        cls, left: RowCodec, left_columns: Sequence[int], right: RowCodec, right_columns: Sequence[int]
    ) -> KeyEquality: ...

@final
class RowComparator:
    """The order of rows by sort keys."""

    def __new__(cls, codec: RowCodec, keys: Sequence[SortKey]) -> RowComparator: ...
