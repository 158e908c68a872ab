"""Python's view of RowCodec; the rest of it is for Cython (row_codec.pxd)."""

from typing import final

import pyarrow as pa
from typing_extensions import Buffer

@final
class RowCodec:
    """Converts between Arrow batches and binary rows of one schema."""

    schema: pa.Schema
    column_count: int
    fixed_size: int
    is_fixed: bool
    def __new__(cls, schema: pa.Schema) -> RowCodec: ...
    def to_rows(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows of a record batch, one behind the other."""
    def from_rows(self, page: Buffer) -> pa.RecordBatch:
        """Return the rows of a page as a record batch; CorruptBlockError when the bytes are not rows."""
