"""The rows for which a function has failed, beside its results, where ``on_error`` says "collect".

    function   row ──► y, error, error_place, position     of the row in the current batch; null where all went well
    batch      rows by their positions ──────────────────► y, error, error_place, error_input

What a worker gives has positions: the batch waits in the task, whole, also where the function is given a few of its
columns (waiting_rows.py). A flat_map may have many results that fail of one wide row, so batches are divided before
they become larger than the bounds.

Held by: tests/integration/test_careful_calls.py
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from engine.graph.call_policy import ERROR_INPUT
from engine.records.arrow_batch import batch_bytes
from engine.records.arrow_functions import pc
from engine.records.batch_limits import BATCH_BYTES_MAX


def positions_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of results with positions in place of the rows, which come last."""
    return pa.schema([*list(schema)[:-1], pa.field(ERROR_INPUT, pa.int64())])


def with_inputs(result: pa.RecordBatch, batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield results with the rows of the batch that they were made from in place of their positions."""
    waiting = [result]
    while waiting:
        part = waiting.pop()
        positions = part.column(part.num_columns - 1)
        if part.num_rows > 1 and _taken_bytes(batch, positions) > BATCH_BYTES_MAX:
            half = part.num_rows // 2
            waiting += [part.slice(half), part.slice(0, half)]
            continue
        inputs = _taken(batch, positions, schema.field(ERROR_INPUT).type)
        yield pa.RecordBatch.from_arrays([*part.columns[:-1], inputs], schema=schema)


def _taken_bytes(batch: pa.RecordBatch, positions: pa.Array) -> int:
    """Return a bound of what the rows at some positions take; 0 where none is taken twice: less than the batch has."""
    counts = pc.value_counts(positions.drop_null())
    most = pc.max(counts.field("counts")).as_py() or 0
    return 0 if most < 2 else int(most * batch_bytes(batch.take(counts.field("values"))))


def _taken(batch: pa.RecordBatch, positions: pa.Array, row_type: pa.StructType) -> pa.Array:
    """Return rows of a batch as structs, null where a position is; an unused column is null."""
    if positions.null_count == len(positions):
        return pa.nulls(len(positions), row_type)
    names = set(batch.schema.names)
    columns = [
        pc.take(batch.column(field.name), positions) if field.name in names else pa.nulls(len(positions), field.type)
        for field in row_type
    ]
    return pa.StructArray.from_arrays(columns, fields=list(row_type), mask=positions.is_null())
