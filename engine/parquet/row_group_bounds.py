"""Bounds of row groups from the footer of a file, and the row groups that may have rows which a filter keeps.

    possible_groups(footer, groups, predicate, schema) -> those of the groups that a row of the predicate may be in
    matched_groups(footer, groups, tests, schema)      -> those that a row with a key of a join may be in
    bounds_of(footer, groups, columns, schema)         -> a row for each: lowest x, highest x, nulls x, row count
    bounds_of_files(footers, columns, schema)          -> the same of all row groups of very many files

The predicate is written anew over these bounds (``statistics.bounds_predicate``), each of its parts for itself, so that
one which is not understood leaves the others as they are. Nothing is concluded from what is missing, or is not what
the engine compares: bounds of columns without statistics, of 96-bit timestamps, nested columns, half floats, texts that
are not UTF-8.

Bounds are taken as the file has them, numbers and bytes: Python's dates and times know fewer of them than Parquet.

Limits: pages are not looked at, nor Bloom filters: pyarrow reads a row group whole, and neither of them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.formats.split_pruning import possible_rows
from engine.graph.expression import Expression, columns_of
from engine.parquet.footers import GroupBounds, arrow_schema, known_bounds
from engine.parquet.kept_answers import kept_answer
from engine.parquet.pages import flat_leaves
from engine.records.adaptive_key_filter import AdaptiveKeyFilter
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import array_of
from engine.records.plain_types import plain_type
from engine.statistics.bounds_predicate import ROW_COUNT, highest, lowest, null_count

_UNITS: Final = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_TEXTS: Final = (pa.string(), pa.large_string())
_BYTES: Final = (pa.binary(), pa.large_binary())
_FLOATS: Final = {pa.float32(): "<f", pa.float64(): "<d"}


def possible_groups(
    footer: pq.FileMetaData, groups: Sequence[int], predicate: Expression, schema: pa.Schema
) -> list[int]:
    """Return the row groups, of some, in which a row may meet a predicate.

    Args:
        footer: of the file.
        groups: of the file, by number.
        predicate: over columns of the schema.
        schema: that rows of the file have in the engine; the file's own types may be narrower.
    """

    def examined() -> list[int]:
        possible = possible_rows(bounds_of(footer, groups, columns_of(predicate), schema), predicate, schema)
        return [group for group, is_possible in zip(groups, possible.to_pylist(), strict=True) if is_possible]

    return list(kept_answer(footer, tuple(groups), predicate, schema, examined)) if groups else []


def matched_groups(
    footer: pq.FileMetaData, groups: Sequence[int], tests: Sequence[AdaptiveKeyFilter], schema: pa.Schema
) -> Sequence[int]:
    """Return the row groups, of some, in which each column may have a value that its filter has."""
    for test in tests:
        if groups:
            bounds = bounds_of(footer, groups, [test.column], schema)
            possible = test.filter.may_lie_between(bounds[lowest(test.column)], bounds[highest(test.column)])
            groups = [group for group, is_possible in zip(groups, possible, strict=True) if is_possible]
    return groups


def bounds_of(
    footer: pq.FileMetaData, groups: Sequence[int], columns: Iterable[str], schema: pa.Schema
) -> pa.RecordBatch:
    """Return the bounds of columns in row groups, at least one; null where they are unknown."""
    known = known_bounds(footer)
    found = {}
    if ROW_COUNT not in known:
        counts = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        known[ROW_COUNT] = GroupBounds(_numbers(counts, pa.int64()), None, None)
    found[ROW_COUNT] = _of_groups(known[ROW_COUNT].null_counts, groups)
    for name in dict.fromkeys(columns):
        if name not in known:
            known[name] = _read_bounds(footer, _groups_of(footer), name)
        bounds = known[name]
        found[null_count(name)] = _of_groups(bounds.null_counts, groups)
        for name_of, values in ((lowest, bounds.lowest), (highest, bounds.highest)):
            of_groups = None if values is None else _of_groups(values, groups)
            found[name_of(name)] = _typed(of_groups, schema.field(name).type, len(groups))
    return pa.RecordBatch.from_pydict(found)


def bounds_of_files(
    footers: Sequence[pq.FileMetaData], columns: Iterable[str], schema: pa.Schema
) -> pa.RecordBatch | None:
    """Return the bounds of columns in all non-empty row groups of very many files, None where the files differ."""
    first = footers[0]
    if not all(footer.schema.equals(first.schema) for footer in footers):
        return None
    groups = [group for footer in footers for group in _groups_of(footer) if group.num_rows]
    found: dict[str, pa.Array] = {ROW_COUNT: _numbers([group.num_rows for group in groups], pa.int64())}
    for name in dict.fromkeys(columns):
        bounds, wanted = _read_bounds(first, groups, name), schema.field(name).type
        found[null_count(name)] = bounds.null_counts
        found[lowest(name)] = _typed(bounds.lowest, wanted, len(groups))
        found[highest(name)] = _typed(bounds.highest, wanted, len(groups))
    return pa.RecordBatch.from_pydict(found)


def _groups_of(footer: pq.FileMetaData) -> list[pq.RowGroupMetaData]:
    return [footer.row_group(group) for group in range(footer.num_row_groups)]


def _typed(values: pa.Array | None, wanted: pa.DataType, count: int) -> pa.Array:
    if values is None:
        return pa.nulls(count, wanted)
    if values.type == wanted:
        return values
    try:
        return pc.cast(values, wanted)
    except pa.ArrowInvalid:
        return pa.nulls(count, wanted)  # integers that no double equals: their reader reports them


def _of_groups(values: pa.Array, groups: Sequence[int]) -> pa.Array:
    """Return the values of some groups: most files are asked for all of theirs, or for one after the other."""
    if list(groups) == list(range(groups[0], groups[0] + len(groups))):
        return values.slice(groups[0], len(groups))
    return pc.take(values, array_of(groups, pa.int64()))


def _read_bounds(footer: pq.FileMetaData, listed: Sequence[pq.RowGroupMetaData], name: str) -> GroupBounds:
    """Return a column's bounds in some row groups, all of files with the columns of one footer."""
    place = flat_leaves(footer.schema).get(name)
    known = [None if place is None else group.column(place).statistics for group in listed]
    nulls = [one.null_count if one is not None and one.has_null_count else None for one in known]
    bounded = [one if one is not None and one.has_min_max else None for one in known]
    stored = plain_type(arrow_schema(footer).field(name).type)
    lows, highs = ([None if one is None else getattr(one, side) for one in bounded] for side in ("min_raw", "max_raw"))
    return as_bounds(lows, highs, nulls, bounded, stored)


def as_bounds(
    lows: list[Any],
    highs: list[Any],
    nulls: Sequence[int | None],
    known: Sequence[pq.Statistics | None],
    stored: pa.DataType,
) -> GroupBounds:
    """Return bounds as the file has them, numbers or bytes, as Arrow's values of the column's own plain type."""
    return GroupBounds(_numbers(nulls, pa.int64()), _values(lows, known, stored), _values(highs, known, stored))


def _values(raw: list[Any], known: Sequence[pq.Statistics | None], stored: pa.DataType) -> pa.Array | None:
    """Return bounds as the file has them in the type that its column has in Arrow; None where that is not known."""
    if pa.types.is_boolean(stored):
        return pc.cast(_numbers(raw, pa.int8()), stored)
    if stored in _TEXTS:
        return _texts([value if value is None or _is_text(value) else None for value in raw], pa.large_string())
    if stored in _BYTES:
        return _texts(raw, pa.large_binary())
    if pa.types.is_time(stored) or pa.types.is_timestamp(stored):
        # Arrow's seconds, for one, are milliseconds in the file.
        unit = _UNITS.get(stored.unit, "none")
        is_same = all(one is None or unit in str(one.logical_type) for one in known)
        return _numbers(raw, stored) if is_same else None
    if pa.types.is_integer(stored) or pa.types.is_date32(stored) or pa.types.is_decimal(stored):
        return _numbers(raw, stored)
    if stored in _FLOATS:
        raw = [math.nan if one is None else one for one in raw]
        # A NaN among the bounds is no bound.
        return _fixed([struct.pack(_FLOATS[stored], one) if not math.isnan(one) else None for one in raw], stored)
    return None


def _numbers(raw: Iterable[Any], data_type: pa.DataType) -> pa.Array:
    """Return whole numbers, or decimals as their digits in bytes, as values of a type that has them so."""
    width = data_type.bit_width // 8
    numbers = (int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else value for value in raw)
    mask = (1 << data_type.bit_width) - 1
    return _fixed([None if one is None else (one & mask).to_bytes(width, "little") for one in numbers], data_type)


def _fixed(values: Sequence[bytes | None], data_type: pa.DataType) -> pa.Array:
    data = b"".join(bytes(data_type.bit_width // 8) if value is None else value for value in values)
    return pa.Array.from_buffers(data_type, len(values), [_validity(values), pa.py_buffer(data)])


def _texts(texts: Sequence[bytes | None], data_type: pa.DataType) -> pa.Array:
    """Return texts, or bytes, of a large type."""
    ends = [0]
    for text in texts:
        ends.append(ends[-1] + len(text or b""))
    offsets = struct.pack(f"={len(ends)}q", *ends)
    data = b"".join(text or b"" for text in texts)
    buffers = [_validity(texts), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(data_type, len(texts), buffers)


def _is_text(value: bytes) -> bool:
    """Whether bytes are UTF-8, which those of a damaged file are not, nor those that were cut in a character."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _validity(values: Sequence[object]) -> pa.Buffer:
    bits = sum(1 << index for index, value in enumerate(values) if value is not None)
    return pa.py_buffer(bits.to_bytes(len(values) // 8 + 1, "little"))
