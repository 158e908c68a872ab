"""The client's side of record data sets, Spark's exports included: Parquet parts with a manifest.

    records_source(folder) -> (ParquetSource, SourceStatistics, pa.Schema)

What the manifest knows (rows, minima, heavy keys of all rows) wins over what a sample would say.

Held by: tests/connectors/test_records_writer.py
"""

from __future__ import annotations

import os

import msgspec
import pyarrow as pa

from engine.connectors.records_layout import proven_order
from engine.connectors.records_manifest import RecordsColumn, RecordsManifest, read_manifest
from engine.errors import SchemaError
from engine.files.paths import local_path
from engine.graph.source_spec import ColumnStatistics, ParquetSource, SourceStatistics
from engine.parquet.source import parquet_source, plain_file_schema, stored_schema


def records_source(folder: str | os.PathLike[str]) -> tuple[ParquetSource, SourceStatistics, pa.Schema]:
    """Return a record data set as a source.

    Raises: PlanError (no data set), DataError (damaged), SchemaError (parts that differ from the manifest's schema).
    """
    path = local_path(folder, "read_records")
    manifest = read_manifest(path)
    schema = plain_file_schema(pa.ipc.read_schema(pa.py_buffer(manifest.schema)))
    parts = [f"{path}/{file.name}" for file in manifest.files if file.rows]
    if not parts:
        empty = ParquetSource(paths=(), splits=(), columns=tuple(schema.names))
        return empty, SourceStatistics(0.0, 0.0, "manifest", is_exact=True), schema
    spec, sampled, found = parquet_source(parts, "read_records")
    # The manifest has the types as they were; Parquet has no seconds and no date64.
    stored = stored_schema(schema, "read_records")
    if set(found.names) != set(schema.names) or any(found.field(one.name).type != one.type for one in stored):
        raise SchemaError(f"{path}: the parts have {found}, the manifest says {schema}")
    columns = {
        name: _merged(sampled.columns.get(name, ColumnStatistics()), manifest.columns.get(name), manifest)
        for name in schema.names
    }
    statistics = SourceStatistics(
        float(manifest.row_count), sampled.size_bytes, f"manifest, {sampled.origin}", is_exact=True, columns=columns
    )
    types_ipc = b"" if stored.types == schema.types else schema.serialize().to_pybytes()
    own = msgspec.structs.replace(
        spec,
        columns=tuple(schema.names),
        types_ipc=types_ipc,
        sorted_by=proven_order(manifest, parts, schema) if manifest.sorted_by else (),
        grouped_by=tuple(name for name in manifest.partitioned_by if name in schema.names),
    )
    return own, statistics, schema


def _merged(sampled: ColumnStatistics, known: RecordsColumn | None, manifest: RecordsManifest) -> ColumnStatistics:
    """Return sampled statistics with the manifest's where it has any."""
    if known is None:
        return sampled
    changes: dict[str, object] = {}
    if known.heavy_keys:
        changes |= {"heavy_keys": known.heavy_keys, "heavy_origin": "manifest"}
    if known.distinct_estimate is not None:
        changes["distinct_count"] = known.distinct_estimate
    if known.null_count is not None and manifest.row_count:
        changes["null_fraction"] = known.null_count / manifest.row_count
    if known.min is not None and known.max is not None:
        changes |= {"minimum": known.min, "maximum": known.max}
    return msgspec.structs.replace(sampled, **changes)
