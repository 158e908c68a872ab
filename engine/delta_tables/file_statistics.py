"""Statistics of a written file for the log: rows, nulls, least and greatest values, as JSON of an add action.

    notes = ValueNotes(schema, write, call); notes.add(batch) ...     what a footer does not tell: NaN
    file_statistics(footer, notes) -> JSON text

Texts are cut after 32 characters, where the greatest one gets a character behind it that is greater than all. Moments
are whole milliseconds, a least one rounded down and a greatest one up. A decimal is written with all its digits. A
column with NaN, which is greater than all numbers, has no bounds, nor has one of infinite values.

Source: the Delta transaction log protocol, "Per-file Statistics".
Held by: tests/delta_tables/test_write_delta.py
"""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from engine.delta_tables.required_parts import null_part, required_parts
from engine.delta_tables.table_write import TableWrite
from engine.errors import DataError
from engine.records.arrow_functions import pc

_TEXT_MAX: Final = 32
_GREATEST: Final = "\U0010ffff"
_EPOCH: Final = datetime(1970, 1, 1)


class ValueNotes:
    """Facts about a file's values that are not in its footer, among which are nulls that may not be there."""

    def __init__(self, schema: pa.Schema, write: TableWrite, call: str) -> None:
        self.schema = schema
        self._required = frozenset(write.required)
        parts = required_parts(write.schema)
        self._parts = {name: data_type for name, data_type in parts.items() if name in schema.names}
        self._call = call
        count, others = write.indexed
        self.indexed = [
            field for place, field in enumerate(schema) if count < 0 or place < count or field.name.lower() in others
        ]
        self.floats = frozenset(field.name for field in schema if pa.types.is_floating(field.type))
        looked_at = {*self.floats, *self._required, *self._parts}
        self._looked_at = [name for name in schema.names if name in looked_at]
        self.with_nan: set[str] = set()

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at rows that are written. Raises: DataError for a null that may not be there."""
        for name in self._looked_at:
            self.add_column(name, batch.column(name))

    def add_column(self, name: str, values: pa.Array) -> None:
        """Look at values of a column that are written. Raises: DataError for a null that may not be there."""
        if name in self._required and values.null_count:
            raise DataError(f"{self._call}: column {name!r} has nulls, and none may be in it")
        if name in self._parts and (part := null_part(values, self._parts[name], name)) is not None:
            raise DataError(f"{self._call}: column {name!r} has nulls in {part}, and none may be in it")
        if name in self.floats and name not in self.with_nan and pc.any(pc.is_nan(values)).as_py():
            self.with_nan.add(name)


def file_statistics(footer: pq.FileMetaData, notes: ValueNotes) -> str:
    """Return the statistics of a file."""
    leaves = {footer.schema.column(leaf).path: leaf for leaf in range(footer.num_columns)}
    minima: dict[str, Any] = {}
    maxima: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for field in notes.indexed:
        if pa.types.is_nested(field.type) or field.name not in leaves:
            continue
        groups = [footer.row_group(group).column(leaves[field.name]) for group in range(footer.num_row_groups)]
        known = [chunk.statistics for chunk in groups if chunk.num_values]
        if any(each is None or not each.has_null_count for each in known):
            continue
        nulls[field.name] = sum(each.null_count for each in known)
        # What has nulls alone has no bounds.
        valued = [each for each in known if each.num_values]
        if not valued or field.name in notes.with_nan or not all(each.has_min_max for each in valued):
            continue
        try:
            least, greatest = min(each.min for each in valued), max(each.max for each in valued)
        except (ValueError, OverflowError):
            continue  # a moment that Python has not
        bounds = _least(least), _greatest(greatest)
        if None not in bounds:
            minima[field.name], maxima[field.name] = bounds
    found = {"numRecords": footer.num_rows, "minValues": minima, "maxValues": maxima, "nullCount": nulls}
    return msgspec.json.encode(found).decode()


def _least(value: Any) -> Any:
    match value:
        case str():
            return value[:_TEXT_MAX]
        case datetime():
            return _moment(value, timedelta(0))
    return _plain(value)


def _greatest(value: Any) -> Any:
    match value:
        case str():
            if len(value) <= _TEXT_MAX:
                return value
            return None if value[_TEXT_MAX] == _GREATEST else value[:_TEXT_MAX] + _GREATEST
        case datetime():
            return _moment(value, timedelta(microseconds=999))
    return _plain(value)


def _plain(value: Any) -> Any:
    match value:
        case bool() | bytes():
            return None
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return msgspec.Raw(format(value, "f").encode())
        case date():
            return value.isoformat()
    return value


def _moment(value: datetime, more: timedelta) -> str | None:
    """Return a moment, a little later and then cut to milliseconds; None: it is beyond what has a text."""
    try:
        local = value.replace(tzinfo=None) - (value.utcoffset() or timedelta(0)) + more
    except OverflowError:
        return None
    text = local.isoformat(timespec="milliseconds")
    return f"{text}Z" if value.tzinfo is not None else text.replace("T", " ")
