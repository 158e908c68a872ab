import pyarrow as pa

def results_of_states(
    batch: pa.RecordBatch, key_count: int, columns: list[tuple[int, int]], schema: pa.Schema
) -> pa.RecordBatch:
    """Return a batch of keys and states as keys and results."""
