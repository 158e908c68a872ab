"""Rows as partial states, each a group of its own: where grouping them first does not make them fewer.

A row alone is a group of one: its sum is the value in the state's type, its count 1 or 0, its min, max, first and last
the value, its moments (1, value, 0).
That is a handful of casts over whole columns, so a partial aggregate that does not reduce costs next to nothing.

Held by: tests/aggregate/test_partial_aggregate.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.accumulators.aggregate_functions import OF_MOMENTS
from engine.accumulators.aggregate_layout import AggregateLayout
from engine.accumulators.moment_kernels import states_of_values
from engine.errors import DataError
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of


def ungrouped_states(batch: pa.RecordBatch, layout: AggregateLayout, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of the state schema with one row for each input row.

    Args:
        batch: rows as they came in, arguments of moments as float64, or as pairs of them.
        layout: of the aggregate.
        schema: of the states, key columns first.

    Raises:
        DataError: a value does not fit its state's type.
    """
    arrays: list[pa.Array] = [batch.column(column) for column in layout.key_columns]
    states = zip(layout.specs, layout.columns, layout.operations, layout.overflow_texts, strict=True)
    for spec, column, operation, text in states:
        if spec.operation == "count_rows":
            arrays.append(pa.repeat(scalar_of(1), batch.num_rows))
        elif spec.operation == "count":
            arrays.append(pc.cast(pc.is_valid(batch.column(column)), pa.int64()))
        elif spec.operation in OF_MOMENTS:
            arrays.append(states_of_values(batch.column(column), operation, spec.type.byte_width))
        elif batch.column(column).type == spec.type:
            arrays.append(batch.column(column))
        else:
            try:
                arrays.append(pc.cast(batch.column(column), spec.type))
            except pa.ArrowInvalid as error:
                raise DataError(text) from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
