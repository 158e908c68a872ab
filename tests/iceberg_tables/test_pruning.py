"""Files without a wanted row are not opened, and no file with one is left out: bounds of columns and of partitions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)

from engine import Environment, col, lit
from engine.column_expressions.expression import Expr
from tests.iceberg_tables.handmade import data_files, local

_NO_BOUNDS = {"write.metadata.metrics.default": "none"}


def _table(catalog: Any, parts: list[list[Any]], data_type: pa.DataType, transform: Any, **properties: str) -> Any:
    schema = pa.schema([("v", data_type), ("n", pa.int64())])
    table = catalog.create_table("db.t", schema=schema, properties=properties)
    if transform is not None:
        with table.update_spec() as update:
            update.add_field("v", transform, "p")
    for number, part in enumerate(parts):
        table.append(pa.table({"v": pa.array(part, data_type), "n": [number] * len(part)}, schema=schema))
    return table


#: cases that every run takes
_QUICK = {"zone", "truncate text", "null", "decimal", "bucket", "nan is the greatest", "cut text"}


def _marked(names: Iterable[str]) -> list[Any]:
    return [name if name in _QUICK else pytest.param(name, marks=pytest.mark.thorough) for name in names]


def _files_read(rows: Any) -> int:
    found = re.search(r"reads (\d+) of \d+ files", rows.explain())
    return 0 if found is None else int(found[1])


_START = datetime(2024, 1, 1)
_ZONE = timezone(timedelta(hours=2))
_TIMES = [[_START + timedelta(hours=hour)] for hour in (0, 30, 24 * 40, 24 * 400)]
_CASES = {
    "day": (_TIMES, pa.timestamp("us"), DayTransform(), col("v") < datetime(2024, 1, 2), 1),
    "hour": (_TIMES, pa.timestamp("us"), HourTransform(), col("v") == datetime(2024, 1, 2, 6), 1),
    "month": (_TIMES, pa.timestamp("us"), MonthTransform(), col("v") >= datetime(2024, 2, 1), 2),
    "year": ([[date(1969, 5, 1)], [date(2024, 5, 1)]], pa.date32(), YearTransform(), col("v") < date(1970, 1, 1), 1),
    "zone": (
        [[each[0].replace(tzinfo=_ZONE)] for each in _TIMES],
        pa.timestamp("us", "UTC"),
        DayTransform(),
        col("v") < datetime(2024, 1, 1, tzinfo=_ZONE) + timedelta(seconds=1),
        1,
    ),
    "truncate text": ([["abcd"], ["abzz"], ["b"]], pa.string(), TruncateTransform(2), col("v") < "abd", 2),
    "truncate int": ([[-1, -9], [5], [12]], pa.int32(), TruncateTransform(10), col("v") < 0, 1),
    "identity": ([["a"], [None], ["b"]], pa.string(), IdentityTransform(), col("v") == "b", 1),
    "null": ([["a"], [None], ["b"]], pa.string(), IdentityTransform(), col("v").is_null(), 1),
    "decimal": (
        [[Decimal("0.25")], [Decimal("-0.25")], [Decimal("1024.00")]],
        pa.decimal128(20, 2),
        IdentityTransform(),
        col("v") < Decimal("0.00"),
        1,
    ),
    "bucket": ([[1], [2], [3], [4]], pa.int64(), BucketTransform(64), col("v") == 3, 1),
    "bucket text": ([["a"], ["b"], ["c"]], pa.string(), BucketTransform(64), col("v").is_in(["a", "c"]), 2),
}


@pytest.mark.parametrize("name", _marked(_CASES))
def test_partitions_alone_leave_out_files(catalog: Any, env: Environment, name: str) -> None:
    parts, data_type, transform, condition, count = _CASES[name]
    _table(catalog, parts, data_type, transform, **_NO_BOUNDS)
    rows = env.read_iceberg("db.t", catalog).filter(condition)
    assert _files_read(rows) == count
    every = env.read_iceberg("db.t", catalog).to_arrow()
    assert sorted(rows.to_arrow()["n"].to_pylist()) == sorted(
        env.from_arrow(every).filter(condition).to_arrow()["n"].to_pylist()
    )


_BOUNDED: dict[str, tuple[list[list[Any]], pa.DataType, Expr, int]] = {
    "long": ([[1, 5], [6, 9], [None]], pa.int64(), col("v") > 5, 1),
    "null": ([[1, 5], [6, None], [None]], pa.int64(), col("v").is_null(), 2),
    "not null": ([[1, 5], [None, None]], pa.int64(), col("v").is_not_null(), 1),
    "nan is the greatest": ([[1.0, math.nan], [2.0]], pa.float64(), col("v") > 5.0, 2),
    "no nan is less": ([[1.0, math.nan], [7.0]], pa.float64(), col("v") < 5.0, 1),
    "cut text": ([["x" * 40 + "a"], ["x" * 40 + "b"], ["y"]], pa.string(), col("v") == "x" * 40 + "b", 2),
    "highest text": ([["\U0010ffff" * 30], ["a"]], pa.string(), col("v") > "b", 1),
    "day": ([[date(1969, 12, 31)], [date(1970, 1, 1)]], pa.date32(), col("v") < date(1970, 1, 1), 1),
    "decimal": ([[Decimal("-1.28")], [Decimal("1.28")]], pa.decimal128(9, 2), col("v") > Decimal("0.00"), 1),
    "bool": ([[True], [False, None]], pa.bool_(), col("v"), 1),
    "bytes": ([[b"\x00"], [b"\xff"]], pa.binary(), col("v") > lit(b"\x7f"), 1),
}


@pytest.mark.parametrize("name", _marked(_BOUNDED))
def test_bounds_of_columns_leave_out_files(catalog: Any, env: Environment, name: str) -> None:
    parts, data_type, condition, count = _BOUNDED[name]
    _table(catalog, parts, data_type, None)
    rows = env.read_iceberg("db.t", catalog).filter(condition)
    assert _files_read(rows) == count
    every = env.read_iceberg("db.t", catalog).to_arrow()
    assert sorted(rows.to_arrow()["n"].to_pylist()) == sorted(
        env.from_arrow(every).filter(condition).to_arrow()["n"].to_pylist()
    )


def test_a_file_that_is_left_out_is_not_opened(catalog: Any, env: Environment) -> None:
    table = _table(catalog, [[1], [2]], pa.int64(), None)
    Path(local(data_files(table)[0])).unlink()
    assert env.read_iceberg("db.t", catalog).filter(col("v") == 2).count() == 1


def test_bounds_of_a_column_that_was_widened_are_still_its_bounds(catalog: Any, env: Environment) -> None:
    from pyiceberg.types import DoubleType, LongType

    table = _table(catalog, [[-3], [7]], pa.int32(), None)
    with table.update_schema() as update:
        update.update_column("v", LongType())
    assert _files_read(env.read_iceberg("db.t", catalog).filter(col("v") < 0)) == 1
    other = catalog.create_table("db.f", schema=pa.schema([("v", pa.float32())]))
    for value in (-3.5, 7.5):
        other.append(pa.table({"v": pa.array([value], pa.float32())}))
    with other.update_schema() as update:
        update.update_column("v", DoubleType())
    assert _files_read(env.read_iceberg("db.f", catalog).filter(col("v") < 0)) == 1


def test_a_partition_that_changed_prunes_by_the_specification_of_each_file(catalog: Any, env: Environment) -> None:
    table = _table(
        catalog, [[datetime(2024, 1, 1)], [datetime(2024, 3, 1)]], pa.timestamp("us"), MonthTransform(), **_NO_BOUNDS
    )
    with table.update_spec() as update:
        update.remove_field("p")
        update.add_field("v", DayTransform(), "d")
    schema = pa.schema([("v", pa.timestamp("us")), ("n", pa.int64())])
    table.append(pa.table({"v": [datetime(2024, 3, 5)], "n": [9]}, schema=schema))
    rows = env.read_iceberg("db.t", catalog).filter(col("v") >= datetime(2024, 3, 5))
    assert _files_read(rows) == 2
    assert rows.to_arrow()["n"].to_pylist() == [9]


def test_the_planner_knows_rows_bounds_and_nulls_of_files(catalog: Any, env: Environment) -> None:
    from engine.iceberg_tables.iceberg_source import iceberg_scan

    table = _table(catalog, [[1, 5], [6, None]], pa.int64(), None)
    found = iceberg_scan(table, table.current_snapshot(), table.schema()).plain
    assert found is not None
    statistics = found[1]
    assert (statistics.row_count, statistics.is_exact) == (4.0, True)
    known = statistics.columns["v"]
    assert (known.minimum, known.maximum, known.null_fraction) == (1, 6, 0.25)
