"""Heavy keys that are computed: an expression over a source's columns, evaluated for rows from all of its parts.

    computed_statistics(spec, expression, row_count) -> ColumnStatistics | None

A join by ``upper(code)`` or by a CASE has heavy keys that no statistics of columns show. The sample is that of its
source: column chunks from all of a Parquet file (``parquet.key_sample``), blocks from all of a CSV file, batches of
Arrow data. None: nothing can be known, since the columns are too wide, or since a value makes the expression fail,
which the job reports.

Held by: tests/sources/test_computed_key_samples.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.errors import EngineError
from engine.expressions.evaluate import evaluate
from engine.formats.registry import format_of
from engine.graph.expression import Expression, columns_of
from engine.graph.source_spec import ColumnStatistics, SourceSpec
from engine.records.key_types import is_key_type
from engine.statistics.column_statistics import sample_statistics

_KEY = "key"


def computed_statistics(spec: SourceSpec, expression: Expression, row_count: float) -> ColumnStatistics | None:
    """Return statistics, from a sample, of an expression's values over all rows of a source."""
    try:
        rows = format_of(spec).sample_rows(spec, list(dict.fromkeys(columns_of(expression))))
        if rows is None or rows.num_rows == 0:
            return None
        (batch,) = rows.combine_chunks().to_batches()
        values = evaluate(expression, batch)
    except (OSError, pa.ArrowException, EngineError):
        return None
    if not is_key_type(values.type):
        return None
    return sample_statistics([pa.table({_KEY: values})], row_count)[_KEY]
