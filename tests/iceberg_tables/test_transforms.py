"""Transforms of partitions are those of pyiceberg, value by value, over all types that have them."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import transforms, types

from engine.expressions.evaluate import evaluate
from engine.graph.expression import Call, ColumnRef

_TIMES = [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1, 1, 1), datetime(2024, 2, 29, 5), None]
_VALUES: dict[str, tuple[list[Any], pa.DataType, types.PrimitiveType]] = {
    "int": ([0, -1, -(2**31) + 2, 2**31 - 1, None], pa.int32(), types.IntegerType()),
    "long": ([0, -7, -(2**63) + 2, 2**63 - 1, None], pa.int64(), types.LongType()),
    "decimal": (
        [Decimal("1.23"), Decimal("-99999.99"), Decimal("0.00"), None],
        pa.decimal128(9, 2),
        types.DecimalType(9, 2),
    ),
    "text": (["", "a", "añ日本x\U0010ffff", None], pa.string(), types.StringType()),
    "binary": ([b"", b"\xff\x00abc", None], pa.binary(), types.BinaryType()),
    "fixed": ([b"1234", b"\x00\xff\x00\xff", None], pa.binary(4), types.FixedType(4)),
    "date": ([date(1969, 12, 31), date(1, 1, 1), date(2024, 2, 29), None], pa.date32(), types.DateType()),
    "timestamp": (_TIMES, pa.timestamp("us"), types.TimestampType()),
    "timestamptz": (_TIMES, pa.timestamp("us", "UTC"), types.TimestamptzType()),
    "time": ([time(0), time(23, 59, 59, 999_999), None], pa.time64("us"), types.TimeType()),
}
_TRANSFORMS: dict[str, tuple[transforms.Transform[Any, Any], str, int]] = {
    "bucket": (transforms.BucketTransform(7), "bucket", 7),
    "truncate": (transforms.TruncateTransform(3), "truncate", 3),
    "year": (transforms.YearTransform(), "year", 0),
    "month": (transforms.MonthTransform(), "month", 0),
    "day": (transforms.DayTransform(), "day", 0),
    "hour": (transforms.HourTransform(), "hour", 0),
    "identity": (transforms.IdentityTransform(), "identity", 0),
    "void": (transforms.VoidTransform(), "void", 0),
}


def _numbers(values: pa.Array) -> list[Any]:
    """Return values as pyiceberg has them: days and times as numbers."""
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    found: list[Any] = values.to_pylist()
    return found


_CASES = [
    (name, transform)
    for name, (_, _, iceberg_type) in _VALUES.items()
    for transform, (known, _, _) in _TRANSFORMS.items()
    if known.can_transform(iceberg_type)
]


@pytest.mark.parametrize(("name", "transform"), _CASES)
def test_values_of_a_transform_are_those_of_pyiceberg(name: str, transform: str) -> None:
    values, data_type, iceberg_type = _VALUES[name]
    known, function, width = _TRANSFORMS[transform]
    # A slice, whose values do not begin where their buffer does.
    array = pa.array([values[0], *values], data_type).slice(1)
    batch = pa.record_batch({"x": array})
    found = evaluate(Call("partition_transform", (ColumnRef("x"),), {"transform": function, "width": width}), batch)
    wanted = [known.transform(iceberg_type)(value) for value in _numbers(array)]
    assert _numbers(found) == wanted
