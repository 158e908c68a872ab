import pyarrow as pa

from engine.records.row_codec import RowCodec

class RowPages:
    """Rows where they lie in pages (see row_pages.pyx)."""

    codec: RowCodec
    row_count: int
    def decoded(self) -> pa.RecordBatch: ...

def pages_of_rows(batch: pa.RecordBatch) -> RowPages: ...
