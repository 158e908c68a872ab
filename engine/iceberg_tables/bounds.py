"""Bounds of columns in data files, by what manifests say of columns and of partitions.

    file_bounds(metadata, files, schema, names) -> pa.Table     a row for each file, as ``bounds_predicate`` wants it
    constant_text(value, type)                                  a partition's value as text that casts to it

    lowest, highest     of the column, from bytes; where a file has none, what its partition says:
                        identity v: v … v        truncate[10] v: v … v + 9     day v: its first … its last microsecond
    nulls               of the column; all rows where the partition's value is null

A bound that was cut short is a bound all the same. NaN is no bound. Bytes that are not as long as values of a type, and
text that was cut within a character, say nothing. Neither do bounds of UUIDs, which writers compare in two ways.

Source: Iceberg's specification, "Binary single-value serialization" and "Partition Transforms".
Held by: tests/iceberg_tables/test_pruning.py
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from engine.iceberg_tables.arrow_types import field_id
from engine.iceberg_tables.planned_files import PlannedFile
from engine.records.arrow_functions import pc
from engine.statistics.bounds_predicate import ROW_COUNT, highest, lowest, null_count

_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAY_US: Final = 86_400_000_000
_HOUR_US: Final = 3_600_000_000
_TRUNCATE: Final = re.compile(r"truncate\[(\d+)\]\Z")
_UUID_BYTES: Final = 16
Bound = tuple[Any, Any]
_UNKNOWN: Final[Bound] = (None, None)


def file_bounds(metadata: Any, files: Sequence[PlannedFile], schema: pa.Schema, names: Sequence[str]) -> pa.Table:
    """Return the bounds of some columns, a row for each file; null for what is not known. ``schema``: with ids."""
    columns = {ROW_COUNT: pa.array([each.file.record_count for each in files], pa.int64())}
    of_lows = [plain_map(each.file.lower_bounds) for each in files]
    of_highs = [plain_map(each.file.upper_bounds) for each in files]
    of_nulls = [plain_map(each.file.null_value_counts) for each in files]
    specs = metadata.specs()
    for name in names:
        field = schema.field(name)
        number = field_id(field)
        lows = _at_once([known.get(number) for known in of_lows], field.type)
        highs = _at_once([known.get(number) for known in of_highs], field.type)
        nulls = [known.get(number) for known in of_nulls]
        if lows is None or highs is None or None in nulls:
            found = [_of_file(specs, each, field) for each in files]
            lows = _values([low for (low, _), _ in found], field.type)
            highs = _values([high for (_, high), _ in found], field.type)
            nulls = [count for _, count in found]
        columns[lowest(name)], columns[highest(name)] = lows, highs
        columns[null_count(name)] = pa.array(nulls, pa.int64())
    return pa.table(columns)


def plain_map(known: Mapping[Any, Any] | None) -> dict[Any, Any]:
    """Return facts about columns as a dict: each look into pyiceberg's own mapping is a call of Python."""
    if known is None or isinstance(known, dict):
        return known or {}
    len(known)  # it is built then
    built = getattr(known, "_dict", None)
    return built if isinstance(built, dict) else dict(known)


def _at_once(raw: list[bytes | None], data_type: pa.DataType) -> pa.Array | None:
    """Return the values of bounds that are all there, without a Python value for each; None: not all are, or can be."""
    is_float = data_type in (pa.float32(), pa.float64())
    if is_float or pa.types.is_integer(data_type) or pa.types.is_temporal(data_type):
        width = data_type.bit_width // 8
        known = [each for each in raw if each is not None and len(each) == width]
        if raw and len(known) == len(raw):
            values = pa.Array.from_buffers(data_type, len(raw), [None, pa.py_buffer(b"".join(known))])
            return None if is_float and pc.any(pc.is_nan(values)).as_py() else values
    elif pa.types.is_string(data_type) and raw and None not in raw:
        with suppress(pa.ArrowInvalid):
            return pc.cast(pa.array(raw, pa.binary()), data_type)
    return None


def _values(values: list[Any], data_type: pa.DataType) -> pa.Array:
    """Return bounds as Arrow's values; those of days and times are numbers, of which Python has not all."""
    if pa.types.is_nested(data_type):
        return pa.nulls(len(values), data_type)
    return pa.array(values, _number_type(data_type) or data_type).view(data_type)


def _number_type(data_type: pa.DataType) -> pa.DataType | None:
    if not pa.types.is_temporal(data_type):
        return None
    return pa.int32() if data_type.bit_width == 32 else pa.int64()


def _of_file(specs: Mapping[int, Any], planned: PlannedFile, field: pa.Field) -> tuple[Bound, int | None]:
    """Return lowest and highest value of a column in a file, and its nulls."""
    file, number = planned.file, field_id(field)
    nulls = (file.null_value_counts or {}).get(number)
    low, high = (_decoded((each or {}).get(number), field.type) for each in (file.lower_bounds, file.upper_bounds))
    if low is None or high is None or nulls is None:
        for partition_field, value in zip(specs[planned.partition[0]].fields, planned.partition[1], strict=True):
            transform = str(partition_field.transform)
            if partition_field.source_id != number or transform == "void":
                continue
            if value is None:
                return _UNKNOWN, file.record_count
            with suppress(ValueError, OverflowError):
                first, last = _of_partition(transform, value, field.type)
                low, high = first if low is None else low, last if high is None else high
            nulls = 0 if nulls is None else nulls
    return (low, high), nulls


def _decoded(raw: bytes | None, data_type: pa.DataType) -> Any:
    """Return the value of a bound's bytes, None where they say nothing of the type."""
    if raw is None:
        return None
    raw = bytes(raw)
    if pa.types.is_boolean(data_type):
        return bool(raw[0]) if len(raw) == 1 else None
    if pa.types.is_integer(data_type) or pa.types.is_temporal(data_type):
        # A column of ints may be one of longs by now; a day is no moment.
        lengths = (4, 8) if data_type == pa.int64() else (data_type.bit_width // 8,)
        return int.from_bytes(raw, "little", signed=True) if len(raw) in lengths else None
    if pa.types.is_floating(data_type):
        form = {4: "<f", 8: "<d"}.get(len(raw))
        value = math.nan if form is None else struct.unpack(form, raw)[0]
        return None if math.isnan(value) else value
    if pa.types.is_decimal(data_type):
        value = Decimal(f"{int.from_bytes(raw, 'big', signed=True)}E-{data_type.scale}")
        return value if len(value.as_tuple().digits) <= data_type.precision else None
    if pa.types.is_string(data_type):
        with suppress(UnicodeDecodeError):
            return raw.decode()
        return None
    if pa.types.is_binary(data_type):
        return raw
    is_fixed = pa.types.is_fixed_size_binary(data_type) and data_type.byte_width == len(raw) != _UUID_BYTES
    return raw if is_fixed else None


def _of_partition(transform: str, value: Any, data_type: pa.DataType) -> Bound:
    """Return the bounds of values that a transform makes a partition's value of."""
    truncated = _TRUNCATE.match(transform)
    if transform == "identity":
        return _of_identity(value, data_type)
    if truncated is not None:
        return _of_truncated(value, int(truncated[1]), data_type)
    if transform == "hour":
        return _of_moments(value * _HOUR_US, (value + 1) * _HOUR_US - 1, data_type)
    if transform == "year":
        first, behind = (date(1970 + each, 1, 1) for each in (value, value + 1))
    elif transform == "month":
        first, behind = (date(1970 + each // 12, each % 12 + 1, 1) for each in (value, value + 1))
    elif transform == "day":
        day = value if isinstance(value, int) else value.toordinal() - _EPOCH
        return _of_days(day, day + 1, data_type)
    else:
        return _UNKNOWN
    return _of_days(first.toordinal() - _EPOCH, behind.toordinal() - _EPOCH, data_type)


def _of_days(first: int, behind: int, data_type: pa.DataType) -> Bound:
    if pa.types.is_date(data_type):
        return first, behind - 1
    return _of_moments(first * _DAY_US, behind * _DAY_US - 1, data_type)


def _of_moments(first_us: int, last_us: int, data_type: pa.DataType) -> Bound:
    if not pa.types.is_timestamp(data_type):
        return _UNKNOWN
    return (first_us, last_us) if data_type.unit == "us" else (first_us * 1000, last_us * 1000 + 999)


def _of_identity(value: Any, data_type: pa.DataType) -> Bound:
    if pa.types.is_temporal(data_type):
        if isinstance(value, date):
            value = value.toordinal() - _EPOCH
        return (value, value) if isinstance(value, int) else _UNKNOWN
    if isinstance(value, float) and math.isnan(value):
        return _UNKNOWN
    is_plain = isinstance(value, bool | int | float | str | Decimal)
    return (value, value) if is_plain or pa.types.is_binary(data_type) else _UNKNOWN


def _of_truncated(value: Any, width: int, data_type: pa.DataType) -> Bound:
    if pa.types.is_integer(data_type):
        highest_value = (1 << (data_type.bit_width - 1)) - 1
        return max(value, -highest_value - 1), min(value + width - 1, highest_value)
    if pa.types.is_string(data_type) or pa.types.is_binary(data_type):
        return value, value if len(value) < width else None
    return _UNKNOWN


def constant_text(value: Any, data_type: pa.DataType) -> str | None:
    """Return the text of a partition's value that casts to a type, of bytes their hexadecimal digits."""
    number_type = _number_type(data_type)
    if value is None:
        return None
    if number_type is not None and isinstance(value, int):
        text: str = pc.cast(pa.array([value], number_type).view(data_type), pa.string())[0].as_py()
        return text
    if isinstance(value, bytes):
        return value.hex()
    return str(value).lower() if isinstance(value, bool) else str(value)
