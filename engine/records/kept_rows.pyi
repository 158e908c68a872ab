import pyarrow as pa

from engine.records.row_mask import Mask

def kept_rows(batch: pa.RecordBatch, mask: pa.BooleanArray | Mask) -> pa.RecordBatch: ...
def kept_columns(
    batch: pa.RecordBatch, mask: pa.BooleanArray | Mask, places: list[int], schema: pa.Schema
) -> pa.RecordBatch: ...
