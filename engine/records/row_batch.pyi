from typing import final

import pyarrow as pa

from engine.records.row_codec import RowCodec

@final
class RowBatch:
    """Some rows of one schema, not decoded (see row_batch.pyx)."""

    codec: RowCodec
    @property
    def num_rows(self) -> int: ...
    def decoded(self) -> pa.RecordBatch: ...

def batch_of_rows(batch: pa.RecordBatch) -> RowBatch:
    """Return the rows of a record batch."""
