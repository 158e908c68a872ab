"""Python's view of NormalizedKey: made here, used from Cython (normalized_key.pxd)."""

from collections.abc import Sequence
from typing import final

from engine.graph.sort_key import SortKey
from engine.records.row_codec import RowCodec

@final
class NormalizedKey:
    """An 8-byte prefix of the sort keys of rows."""

    decides: bool
    def __new__(cls, codec: RowCodec, keys: Sequence[SortKey]) -> NormalizedKey: ...
