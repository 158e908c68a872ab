"""The changed rows of an Iceberg table, a snapshot after the other: what came and went, as Spark's changelog has it.

    files that came ──────────────────────────────────────────► inserted ─► without what went in the same snapshot ─►
    files that went ────────────────────────────► deleted ────► without what came in the same snapshot ─────────────►
    files with fewer rows, before ─► anti join ─►    └── by file and place in it
             the same files, now ─►

Rows that were only written into another file come and go at once, and are no change. An update is a row that goes and
one that comes: tables have no keys by which both are the same.

Held by: tests/iceberg_tables/test_changes.py
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import pyarrow as pa

from engine.column_expressions.expressions import lit
from engine.column_expressions.windows import row_number
from engine.formats.source_format import FoundSource
from engine.graph.merge_action import FILE, POSITION
from engine.iceberg_tables.iceberg_source import iceberg_scan
from engine.iceberg_tables.snapshot_changes import SnapshotStep, steps_since
from engine.iceberg_tables.tables import placed_errors
from engine.outputs.iceberg_rows import iceberg_rows
from engine.records.key_types import is_key_type

_CALL: Final = "read_changes"
_TEXT: Final = "__changes_text_"
_COPY: Final = "__changes_copy"


def iceberg_changes(table: Any, since: int | None, data_set: Callable[[FoundSource], Any]) -> Any:
    """Return the rows that snapshots behind one have changed. Raises: PlanError, ConfigurationError."""
    with placed_errors(_CALL, ".".join(table.name())):
        changes = _Changes(table, data_set)
        parts = [part for step in steps_since(table, since) for part in changes.of(step)]
        return parts[0].union(*parts[1:]) if len(parts) > 1 else parts[0] if parts else changes.none()


class _Changes:
    """Makes data sets of steps."""

    def __init__(self, table: Any, data_set: Callable[[FoundSource], Any]) -> None:
        self._table, self._data_set = table, data_set

    def none(self) -> Any:
        """Return no rows."""
        return self._told(self._rows(None, frozenset()), "insert", 0, 0)

    def of(self, step: SnapshotStep) -> list[Any]:
        """Return the inserted rows, and the deleted ones, as far as there may be some."""
        came = self._rows(step.snapshot, step.added) if step.added else None
        gone = [self._rows(step.before, step.removed)] if step.removed else []
        if step.marked:
            before = self._rows(step.before, step.marked, has_place=True)
            now = self._rows(step.snapshot, step.marked, has_place=True).select(FILE, POSITION)
            gone.append(before.join(now, on=[FILE, POSITION], how="anti").drop(FILE, POSITION))
        went = gone[0].union(*gone[1:]) if len(gone) > 1 else gone[0] if gone else None
        if came is not None and went is not None:
            came, went = _without(came, went), _without(went, came)
        number, moment = step.snapshot.snapshot_id, step.snapshot.timestamp_ms
        return [
            self._told(rows, word, number, moment)
            for rows, word in ((went, "delete"), (came, "insert"))
            if rows is not None
        ]

    def _rows(self, snapshot: Any, paths: frozenset[str], *, has_place: bool = False) -> Any:
        schema = self._table.schema()
        scan = iceberg_scan(self._table, snapshot, schema, paths, has_file=has_place, has_place=has_place)
        return iceberg_rows(scan, self._data_set)

    @staticmethod
    def _told(rows: Any, word: str, number: int, moment_ms: int) -> Any:
        moment = datetime.fromtimestamp(moment_ms / 1000, UTC).replace(tzinfo=None)
        return rows.with_columns(
            _change_type=lit(word),
            _commit_version=lit(number).cast(pa.int64()),
            _commit_timestamp=lit(moment).cast(pa.timestamp("ms")),
        )


def _without(rows: Any, others: Any) -> Any:
    """Return rows without as many equal ones as there are of others; nested values are equal where their texts are."""
    schema = rows.schema
    nested = [field.name for field in schema if not is_key_type(field.type)]
    if not nested:
        return rows.except_(others, all=True)
    texts = [f"{_TEXT}{index}" for index in range(len(nested))]
    wide = pa.schema([*schema, *(pa.field(name, pa.string()) for name in texts)])
    keys = [*(name for name in schema.names if name not in nested), *texts]
    numbered = [
        side.map_batches(partial(_with_texts, nested), schema=wide).with_columns(
            **{_COPY: row_number().over(partition_by=keys)}
        )
        for side in (rows, others)
    ]
    left = numbered[1].select(*keys, _COPY)
    return numbered[0].join(left, on=[*keys, _COPY], how="anti", null_safe=True).select(*schema.names)


def _with_texts(nested: list[str], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with the texts of nested values."""
    for index, name in enumerate(nested):
        values = batch.column(name).to_pylist()
        texts = pa.array([None if value is None else repr(value) for value in values], pa.string())
        batch = batch.append_column(f"{_TEXT}{index}", texts)
    return batch
