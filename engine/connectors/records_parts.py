"""Parts of a record data set: statistics of their columns, and the manifest that follows from all of them.

    task        RecordsWriter ─► PartStatistics as JSON ─┐
    task        RecordsWriter ─► PartStatistics as JSON ─┴─► records_manifest ─► bytes of _manifest.json
                                                             in the JobMaster, which knows no Arrow

    minimum, maximum    the least and the greatest of the parts'; unknown when one part does not know
    nulls               sum
    distinct values     HyperLogLog: the larger of each pair of registers (``distinct_sketch``), then the estimate
    heavy keys          shares weighed with the parts' rows; those of at least HEAVY_SHARE_MIN, the heaviest first

A subtask that writes several parts tells of columns with the last one only (``hand_on``): registers are 4 KiB of each
column, and reports and journals hold them until the job ends.

The same parts give the same bytes: publishing a decision again writes the same manifest.

Source: Ertl, New cardinality estimation algorithms for HyperLogLog sketches (2017).
Held by: tests/connectors/test_records_writer.py
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from engine.connectors.records_manifest import (
    HEAVY_KEYS_MAX,
    HEAVY_SHARE_MIN,
    RecordsColumn,
    RecordsFile,
    RecordsManifest,
    Value,
    encode_manifest,
)

PRODUCER: Final = "drey"
#: a key that is heavy in the whole has at least this share in the parts where it matters
PART_SHARE_MIN: Final = HEAVY_SHARE_MIN / 4
#: bits of a hash that are not the index of a register
_RANK_BITS = 52


class PartColumn(msgspec.Struct, frozen=True):
    """Statistics of one column of a part. ``registers``: of its distinct sketch, b"" without one."""

    min: Value = None
    max: Value = None
    #: False: there are values, and their bounds are not known
    has_bounds: bool = True
    #: bounds are texts of decimal numbers
    is_decimal: bool = False
    null_count: int | None = None
    registers: bytes = b""
    #: (text of the value, share of the part's rows)
    heavy_keys: tuple[tuple[str, float], ...] = ()


class PartStatistics(msgspec.Struct, frozen=True):
    """The statistics of a part from its writer: ``crc32`` is zlib.crc32 of the whole file, None: unknown.

    ``columns`` tells of ``row_count`` rows: the part's, and those of parts before it that have no columns.
    """

    crc32: int | None
    footer_crc32: int | None = None
    row_count: int = 0
    columns: dict[str, PartColumn] = {}


class WrittenPart(msgspec.Struct, frozen=True):
    """A part file under its final name."""

    name: str
    row_count: int
    size_bytes: int
    #: PartStatistics as JSON
    statistics_json: str


def hand_on(former: str, latter: str) -> tuple[str, str]:
    """Return the statistics of two parts of a subtask as JSON, the latter with what both tell of columns."""
    first, second = (msgspec.json.decode(each, type=PartStatistics) for each in (former, latter))
    told = [(each.row_count, each.columns) for each in (first, second) if each.row_count]
    columns = joined_columns(told, list(second.columns))
    bare = msgspec.structs.replace(first, row_count=0, columns={})
    full = msgspec.structs.replace(second, row_count=first.row_count + second.row_count, columns=columns)
    return msgspec.json.encode(bare).decode(), msgspec.json.encode(full).decode()


def joined_columns(
    parts: Sequence[tuple[int, Mapping[str, PartColumn]]], names: Sequence[str]
) -> dict[str, PartColumn]:
    """Return the combined statistics of columns of several parts."""
    return {name: _joined([(rows, columns[name]) for rows, columns in parts]) for name in names}


def records_manifest(schema_ipc: bytes, parts: Sequence[WrittenPart]) -> bytes:
    """Return the manifest of some parts, in their order, as the bytes of its file."""
    return encode_manifest(merged_manifest(schema_ipc, parts))


def merged_manifest(
    schema_ipc: bytes, parts: Sequence[WrittenPart], producer: str = PRODUCER, bad_rows: int = 0
) -> RecordsManifest:
    """Return the manifest of some parts, in their order."""
    known = [msgspec.json.decode(part.statistics_json, type=PartStatistics) for part in parts]
    files = tuple(
        RecordsFile(part.name, part.row_count, part.size_bytes, statistics.crc32, statistics.footer_crc32)
        for part, statistics in zip(parts, known, strict=True)
    )
    filled = [(one.row_count, one.columns) for one in known if one.row_count]
    names = list(dict.fromkeys(name for one in known for name in one.columns))
    columns = {name: merged_column([(rows, of_part[name]) for rows, of_part in filled]) for name in names}
    row_count = sum(part.row_count for part in parts)
    size_bytes = sum(part.size_bytes for part in parts)
    return RecordsManifest(schema_ipc, files, row_count, size_bytes, columns, producer=producer, bad_rows=bad_rows)


def merged_column(parts: Sequence[tuple[int, PartColumn]]) -> RecordsColumn:
    """Return the manifest's statistics of a column from those of its parts."""
    rows = sum(row_count for row_count, _ in parts)
    whole = _joined(parts)
    distinct = None
    if whole.registers or not parts:
        sketches = [whole.registers] if whole.registers else []
        distinct = min(float(round(distinct_estimate(sketches))), float(rows - (whole.null_count or 0)))
    heavy = [(text, round(share, 4)) for text, share in whole.heavy_keys if share >= HEAVY_SHARE_MIN]
    return RecordsColumn(whole.min, whole.max, whole.null_count, distinct, tuple(heavy[:HEAVY_KEYS_MAX]))


def _joined(parts: Sequence[tuple[int, PartColumn]]) -> PartColumn:
    """Return the combined statistics of a column of several parts."""
    nulls = [part.null_count for _, part in parts if part.null_count is not None]
    sketches = [part.registers for _, part in parts if part.registers]
    has_bounds = all(part.has_bounds for _, part in parts)
    is_decimal = any(part.is_decimal for _, part in parts)
    order = Decimal if is_decimal else _itself
    minima: list[Any] = [part.min for _, part in parts if part.min is not None]
    maxima: list[Any] = [part.max for _, part in parts if part.max is not None]
    return PartColumn(
        min(minima, key=order, default=None) if has_bounds else None,
        max(maxima, key=order, default=None) if has_bounds else None,
        has_bounds,
        is_decimal,
        sum(nulls) if len(nulls) == len(parts) else None,
        _largest(sketches),
        _heavy_keys(parts),
    )


def _largest(sketches: Sequence[bytes]) -> bytes:
    """Return the larger of each register."""
    if len(sketches) > 1:
        return bytes(map(max, *sketches))
    return sketches[0] if sketches else b""


def _itself(value: Any) -> Any:
    return value


def _heavy_keys(parts: Sequence[tuple[int, PartColumn]]) -> tuple[tuple[str, float], ...]:
    """Return keys and shares of all rows, the heaviest first; shares of a subtask's part are summed, not rounded."""
    rows = sum(row_count for row_count, _ in parts)
    counts: Counter[str] = Counter()
    for row_count, part in parts:
        for text, share in part.heavy_keys:
            counts[text] += share * row_count  # type: ignore[assignment]
    heavy = [(text, count / rows) for text, count in counts.items() if count >= PART_SHARE_MIN * rows]
    return tuple(sorted(heavy, key=lambda one: (-one[1], one[0])))


def distinct_estimate(sketches: Sequence[bytes]) -> float:
    """Return the number of distinct values that sketches of equal size have seen; 0 without any."""
    if not sketches:
        return 0.0
    registers = _largest(sketches)
    size = len(registers)
    multiplicity: Mapping[int, int] = Counter(registers)
    total = size * _tau(1 - multiplicity.get(_RANK_BITS + 1, 0) / size)
    for rank in range(_RANK_BITS, 0, -1):
        total = (total + multiplicity.get(rank, 0)) / 2
    total += size * _sigma(multiplicity.get(0, 0) / size)
    return size * size / (2 * math.log(2) * total)


def _sigma(share: float) -> float:
    """Return the correction for empty registers: share + sum of share ** (2 ** k) * 2 ** (k - 1)."""
    if share == 1:
        return math.inf
    power, weight, total = share, 1.0, share
    while True:
        power *= power
        before, total, weight = total, total + power * weight, 2 * weight
        if total == before:
            return total


def _tau(share: float) -> float:
    """Return the correction for full registers."""
    if share in (0.0, 1.0):
        return 0.0
    weight, total = 1.0, 1 - share
    while True:
        share = math.sqrt(share)
        weight /= 2
        before, total = total, total - (1 - share) ** 2 * weight
        if total == before:
            return total / 3
