"""The rows of an Iceberg table as a data set: files without equality deletes, and the others joined with them.

    files without equality deletes ──────────────────────────────────────────────────► union
    files with ── sequence number, partition ─► anti join ─► anti join ─► columns ────►
                                                  │            │
    deleted keys, the newest delete of each ──────┘            └── for other key columns

    a row is deleted where a delete of its key, null equal to null, in its partition or of all, is newer than its file

Held by: tests/iceberg_tables/test_equality_deletes.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.column_expressions.aggregates import max_
from engine.column_expressions.expressions import col
from engine.formats.source_format import FoundSource
from engine.iceberg_tables.iceberg_source import PARTITION, SEQUENCE, EqualityDeletes, IcebergScan

_DELETED_AT = "__iceberg_deleted_at"


def iceberg_rows(scan: IcebergScan, data_set: Callable[[FoundSource], Any]) -> Any:
    """Return the rows of a snapshot; ``data_set`` makes a DataSet of a source."""
    parts = [] if scan.plain is None else [data_set(scan.plain)]
    if scan.marked is not None:
        rows = data_set(scan.marked)
        for deletes in scan.deletes:
            rows = _without_deleted(rows, deletes, data_set(deletes.found))
        parts.append(rows.select(*scan.schema.names))
    return parts[0] if len(parts) == 1 else parts[0].union(*parts[1:])


def _without_deleted(rows: Any, deletes: EqualityDeletes, keys: Any) -> Any:
    """Return rows of which no newer delete has the key."""
    names = [*deletes.columns, *([] if deletes.is_global else [PARTITION])]
    newest = keys.group_by(*names).agg(max_(SEQUENCE).alias(_DELETED_AT))
    is_older = col(SEQUENCE) < col(_DELETED_AT)
    return rows.join(newest, on=names, how="anti", condition=is_older, null_safe=True)
