"""Heavy keys that are computed: an expression over a source's columns, evaluated for rows from all of its parts.

    computed_statistics(spec, expression, row_count) -> ColumnStatistics | None

A join by ``upper(code)`` or by a CASE has heavy keys that no statistics of columns show. The sample is that of its
source: column chunks from all of a Parquet file (``parquet.key_sample``), blocks from all of a CSV file, batches of
Arrow data. None: nothing can be known, be it that the columns are too wide or that a value makes the expression fail,
of which the job will tell.

Held by: tests/api/test_computed_key_samples.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from engine.connectors.arrow_reader import ArrowReader
from engine.csv.sample import csv_sample, first_head
from engine.errors import EngineError
from engine.expressions.evaluate import evaluate
from engine.graph.expression import Expression, columns_of
from engine.graph.source_spec import ArrowSource, ColumnStatistics, CsvSource, ParquetSource, SourceSpec
from engine.parquet.key_sample import spread_rows, spread_splits
from engine.records.key_types import is_key_type
from engine.statistics.column_statistics import SpreadSample, sample_statistics

_KEY = "key"
#: read of a source of Arrow data, all columns
_ARROW_BYTES = 32 << 20


def computed_statistics(spec: SourceSpec, expression: Expression, row_count: float) -> ColumnStatistics | None:
    """Return what a sample says of an expression's values over all rows of a source."""
    try:
        rows = _rows(spec, list(dict.fromkeys(columns_of(expression))))
        if rows is None or rows.num_rows == 0:
            return None
        (batch,) = rows.combine_chunks().to_batches()
        values = evaluate(expression, batch)
    except (OSError, pa.ArrowException, EngineError):
        return None
    if not is_key_type(values.type):
        return None
    return sample_statistics([pa.table({_KEY: values})], row_count)[_KEY]


def _rows(spec: SourceSpec, columns: Sequence[str]) -> pa.Table | None:
    match spec:
        case ParquetSource():
            return spread_rows(spec, columns)
        case CsvSource():
            schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
            return pa.concat_tables(csv_sample(spec, first_head(spec), schema, columns).tables)
        case ArrowSource():
            return _arrow_rows(msgspec.structs.replace(spec, columns=tuple(columns)))
        case _:
            return None


def _arrow_rows(spec: ArrowSource) -> pa.Table | None:
    splits = spread_splits(spec.splits)
    while len(splits) > 1 and sum(split.size_bytes for split in splits) > _ARROW_BYTES:
        splits = splits[::2]
    sample = SpreadSample()
    schema = None
    for batch in ArrowReader(spec, splits):
        schema = batch.schema
        sample.add(batch)
    return None if schema is None or sample.widths else sample.table(schema)
