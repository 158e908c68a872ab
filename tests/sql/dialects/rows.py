"""The rows that expressions of all dialects are evaluated over, as a table of Arrow and as VALUES of SQL."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa

TABLE = pa.table(
    {
        "n": pa.array([1, 2, 3, 4], pa.int64()),
        "i": pa.array([7, -7, 0, None], pa.int64()),
        "k": pa.array([2, 2, 3, 5], pa.int64()),
        "v": pa.array([2.5, -2.5, 0.1, None], pa.float64()),
        "p": pa.array([Decimal("1.25"), Decimal("-1.25"), Decimal("10.00"), None], pa.decimal128(10, 2)),
        "s": pa.array(["Hello World", "a,b,c", "", None], pa.string()),
        "t": pa.array(["o", "b", "x", "y"], pa.string()),
        "d": pa.array([date(2024, 2, 29), date(2023, 1, 1), date(1999, 12, 31), None], pa.date32()),
        "e": pa.array([date(2024, 3, 1), date(2022, 12, 31), date(2000, 1, 1), date(2020, 5, 17)], pa.date32()),
        "m": pa.array(
            [datetime(2024, 2, 29, 13, 5, 9, 123456), datetime(2023, 1, 1), datetime(1999, 12, 31, 23, 59, 59), None],
            pa.timestamp("us"),
        ),
        "b": pa.array([True, False, True, None], pa.bool_()),
        "l": pa.array([[3, 1, 2], [5], [], None], pa.list_(pa.int64())),
        "w": pa.array([["x", "y"], ["z"], ["x"], None], pa.list_(pa.string())),
    }
)
