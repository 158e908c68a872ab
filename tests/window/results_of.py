"""What an evaluation of groups gives for rows that come in batches; it is closed whatever happens."""

import pyarrow as pa


def results_of(groups, rows: pa.Table, batch_rows: int) -> list[pa.RecordBatch]:
    """Return the results of a fresh evaluation."""
    try:
        batches = []
        for batch in rows.combine_chunks().to_batches(batch_rows):
            batches += groups.add(batch)
        batches += groups.finish()
    finally:
        groups.close()
    return batches
