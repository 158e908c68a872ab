"""GroupMarker: where groups begin in a stream of sorted batches, for functions over groups.

    marker = GroupMarker(schema, keys)
    marker.mark(batch) -> the batch with a column GROUP_START      (engine.functions.group_rows says what it holds)

Batches come sorted by the keys, so a group is a stretch of rows with equal keys, over as many batches as it takes. Two
rows are in one group when every key is equal as the engine sees it: null equals null, NaN equals NaN, -0.0 equals
0.0, text and bytes by their bytes. Where two inputs were sorted together the second side of a group is marked too.

Of the last row of a batch its keys are kept, and of a very wide one its digest (BLAKE2b, 32 bytes): otherwise it would
be in memory while the next row is made.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.functions.group_rows import GROUP_START, NEW_KEY, NEW_SIDE, SIDE
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.records.wide_rows import WIDE_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

_VARIABLE: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


class GroupMarker:
    """Finds where groups begin in a stream of sorted batches."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)
        self._has_sides = SIDE in schema.names
        self._compared = list(dict.fromkeys((*keys, SIDE) if self._has_sides else keys))
        self._schema = schema.append(pa.field(GROUP_START, pa.int8()))
        #: keys of the row before: an array of one value, or the digest of a very wide one
        self._last: dict[str, pa.Array | bytes] = {}
        self._has_begun = False

    def mark(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch (not empty) with its marks."""
        marks = pc.if_else(self._changes(batch, self._keys), pa.scalar(NEW_KEY, pa.int8()), pa.scalar(0, pa.int8()))
        if self._has_sides:
            new_side = pc.if_else(self._changes(batch, (SIDE,)), pa.scalar(NEW_SIDE, pa.int8()), marks)
            marks = pc.max_element_wise(marks, new_side)
        if not self._has_begun:
            self._has_begun = True
            marks = pa.concat_arrays([pa.array([NEW_KEY], pa.int8()), marks.slice(1)])
        for name in self._compared:
            last = batch.column(name).slice(batch.num_rows - 1)
            self._last[name] = _digest(last) or last
        return pa.RecordBatch.from_arrays([*batch.columns, marks], schema=self._schema)

    def _changes(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
        """Return a flag for each row: whether one of the columns differs from the row before."""
        changes = pa.repeat(scalar_of(False), batch.num_rows)
        for name in columns:
            column = batch.column(name)
            first, rest = self._first_change(name, column.slice(0, 1)), column.slice(1)
            changes = pc.or_(changes, pa.concat_arrays([first, _differs(column.slice(0, len(rest)), rest)]))
        return changes

    def _first_change(self, name: str, first: pa.Array) -> pa.Array:
        """Return whether the first value of a batch differs from the row before; not asked of the first batch."""
        before = self._last.get(name, first)
        if isinstance(before, bytes):
            return pa.array([_digest(first) != before])
        return _differs(before, first)


def _digest(value: pa.Array) -> bytes | None:
    """Return the digest of an array of one very wide text or bytes, else None."""
    if value.null_count or not any(is_one(value.type) for is_one in _VARIABLE):
        return None
    content = value[0].as_buffer()
    return blake2b(content, digest_size=32).digest() if content.size >= WIDE_BYTES else None


def _differs(previous: pa.Array, current: pa.Array) -> pa.Array:
    """Return the mask of rows where two arrays of one type differ; null equals null and NaN equals NaN."""
    if pa.types.is_dictionary(current.type):
        previous, current = previous.dictionary_decode(), current.dictionary_decode()
    if pa.types.is_null(current.type):
        return pa.repeat(scalar_of(False), len(current))
    if pa.types.is_float16(current.type):
        previous, current = pc.cast(previous, pa.float32()), pc.cast(current, pa.float32())
    differs = pc.not_equal(previous, current)
    if pa.types.is_floating(current.type):
        differs = pc.and_not(differs, pc.and_(pc.is_nan(previous), pc.is_nan(current)))
    if not (previous.null_count or current.null_count):
        return differs
    return pc.or_(pc.fill_null(differs, False), pc.xor(pc.is_null(previous), pc.is_null(current)))
