"""Rows in the order of their partition: where one ends and the next begins, and the folder of each.

    runs = PartitionRuns(schema, ("year", "kind"))
    runs.of(batch) ──► ("year=2024/kind=a", rows without year and kind), ("year=2024/kind=b", ...), ...

One Python step for each partition of a batch, none for a row.

Held by: tests/connectors/test_partition_runs.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from engine.errors import SchemaError
from engine.files.hive import folder_name
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_KINDS = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean),
    *(pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal),
)


def check_partition_by(schema: pa.Schema, keys: Sequence[str], writer: str) -> None:
    """Raise SchemaError for columns that are not there, have no text as a folder, or are all that there are."""
    for key in keys:
        if key not in schema.names:
            raise SchemaError(f"{writer}: partition_by={key!r}: there is no such column; there are {schema.names}")
        data_type = schema.field(key).type
        is_scaled = pa.types.is_decimal(data_type) and data_type.scale < 0
        if is_scaled or not any(is_kind(data_type) for is_kind in _KINDS):
            raise SchemaError(
                f"{writer}: partition_by={key!r} is {data_type}; a folder is named after text, whole"
                " numbers, decimals, bools, dates and timestamps; cast it"
            )
    if len(set(keys)) < len(keys):
        raise SchemaError(f"{writer}: partition_by has a column twice: {', '.join(keys)}")
    if len(keys) == len(schema.names):
        raise SchemaError(f"{writer}: partition_by has all columns, and none is left for the files")


class PartitionRuns:
    """Divides batches by some columns. ``schema`` is that of the rest."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str]) -> None:
        self._keys = list(keys)
        self._rest = [name for name in schema.names if name not in keys]
        self.schema = pa.schema([schema.field(name) for name in self._rest])

    def of(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the folder and the rows of each run of equal values, in order."""
        columns = [batch.column(name) for name in self._keys]
        starts = self._starts(columns, batch.num_rows)
        names = [pc.cast(column, pa.string()).take(pa.array(starts, pa.int64())).to_pylist() for column in columns]
        rest = batch.select(self._rest)
        for index, start in enumerate(starts):
            end = starts[index + 1] if index + 1 < len(starts) else batch.num_rows
            folder = "/".join(folder_name(key, texts[index]) for key, texts in zip(self._keys, names, strict=True))
            yield folder, rest.slice(start, end - start)

    @staticmethod
    def _starts(columns: Sequence[pa.Array], row_count: int) -> list[int]:
        changed: Any = pa.repeat(scalar_of(False), row_count - 1)
        for column in columns:
            before, after = column.slice(0, row_count - 1), column.slice(1)
            differs = pc.fill_null(pc.not_equal(before, after), scalar_of(False))
            one_is_null = pc.xor(pc.is_null(before), pc.is_null(after))
            changed = pc.or_(changed, pc.or_(differs, one_is_null))
        return [0, *(index + 1 for index in pc.indices_nonzero(changed).to_pylist())]
