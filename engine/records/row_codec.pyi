"""Python's view of RowCodec; the rest of it is for Cython (row_codec.pxd)."""

from collections.abc import Iterable
from typing import final

import pyarrow as pa
from typing_extensions import Buffer

from engine.memory.value_stores import ValueOwner

@final
class RowCodec:
    """Converts between Arrow batches and binary rows of one schema."""

    schema: pa.Schema
    column_count: int
    fixed_size: int
    is_fixed: bool
    def __new__(cls, schema: pa.Schema) -> RowCodec: ...
    def keep_outside(self, owner: ValueOwner, inside: Iterable[int] = ()) -> None:
        """Store wide values out of line, with owner; columns of these indexes stay in their rows."""
    def to_rows(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows of a record batch, one behind the other."""
    def from_rows(self, page: Buffer) -> pa.RecordBatch:
        """Return the rows of a page as a record batch; CorruptBlockError when the bytes are not rows."""
