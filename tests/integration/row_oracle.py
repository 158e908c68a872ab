"""Comparing what a job returns with what plain Python or DuckDB say.

Values are brought to one form first: -0.0 is 0.0 and NaN is one value, as the contract has it for keys, and rows of
unordered results are compared as multisets.
"""

import datetime
import decimal
from collections import Counter

import duckdb
import pyarrow as pa


def plain(value):
    """Return a value such that equal by the contract means equal in Python, and different means different."""
    if isinstance(value, float):
        if value != value:
            return "NaN"
        return ("number", value + 0.0 if value else 0.0)
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | decimal.Decimal):
        return ("number", value)
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return tuple((key, plain(item)) for key, item in value.items())
    return value


def plain_row(row):
    return tuple(map(plain, row))


def rows_of(table):
    """Return the rows of an Arrow table as tuples."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table.num_columns else []


def assert_same_rows(actual, expected):
    """Compare rows as multisets."""
    left, right = Counter(map(plain_row, actual)), Counter(map(plain_row, expected))
    assert left == right, (
        f"only in the result: {list((left - right).items())[:5]}, missing: {list((right - left).items())[:5]}"
    )


def assert_same_order(actual, expected):
    """Compare rows one by one."""
    assert list(map(plain_row, actual)) == list(map(plain_row, expected))


def duck(sql, **tables):
    """Return the rows of a query over Arrow tables."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone='UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        return connection.execute(sql).fetchall()


def order_key(value):
    """Return a key by which values of one type are ordered as the contract says: bytes of UTF-8, NaN largest."""
    if isinstance(value, float):
        return (1, 0.0) if value != value else (0, value)
    if isinstance(value, str):
        return value.encode()
    return value


def sorted_rows(rows, keys, descending=None, nulls_last=False):
    """Return rows in the order of key positions; nulls_last is absolute."""
    descending = descending or [False] * len(keys)
    result = list(rows)
    for position, reverse in reversed(list(zip(keys, descending, strict=True))):
        nulls = [row for row in result if row[position] is None]
        others = [row for row in result if row[position] is not None]
        others.sort(key=lambda row, position=position: order_key(row[position]), reverse=reverse)
        result = others + nulls if nulls_last else nulls + others
    return result


DAY = datetime.date(2024, 2, 29)
UTC = datetime.UTC
D = decimal.Decimal

#: values of every type that can be a key; the first one is the frequent one, and two of them are close neighbours
KEY_VALUES = {
    pa.bool_(): [True, False],
    pa.int8(): [-1, 0, 127, -128, 1],
    pa.int16(): [-1, 0, 32767, -32768, 256],
    pa.int32(): [-1, 0, 2**31 - 1, -(2**31), 65536],
    pa.int64(): [-1, 0, 2**63 - 1, -(2**63), 2**32, 2**53 + 1],
    pa.uint8(): [0, 255, 128, 127],
    pa.uint16(): [0, 65535, 32768, 256],
    pa.uint32(): [0, 2**32 - 1, 2**31, 7],
    pa.uint64(): [0, 2**64 - 1, 2**63, 2**63 - 1, 7],
    pa.float32(): [0.0, -0.0, 1.5, -1.5, float("nan"), float("inf"), float("-inf")],
    pa.float64(): [0.0, -0.0, 1.5, -1.5, float("nan"), float("inf"), float("-inf"), 5e-324],
    pa.decimal128(10, 2): [D("0.00"), D("-0.01"), D("99999999.99"), D("-99999999.99"), D("0.01")],
    pa.decimal128(38, 0): [D(0), D(10**37), D(-(10**37)), D(2**64)],
    pa.date32(): [DAY, datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)],
    pa.time64("us"): [datetime.time(0), datetime.time(23, 59, 59, 999999), datetime.time(12)],
    pa.timestamp("us"): [
        datetime.datetime(2024, 2, 29),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(2024, 2, 29, 0, 0, 0, 1),
    ],
    pa.timestamp("ms", "UTC"): [
        datetime.datetime(2024, 2, 29, tzinfo=UTC),
        datetime.datetime(1960, 1, 1, tzinfo=UTC),
        datetime.datetime(2024, 2, 29, 1, tzinfo=UTC),
    ],
    pa.string(): ["", "a", "aa", "ä", "z", "€", "\U0001f600", "\uffee", "same prefix 0", "same prefix 1", "x" * 300],
    pa.large_string(): ["", "b", "ä", "long enough to be apart"],
    pa.binary(): [b"", b"\0", b"\0\0", b"\xff", b"same prefix 0", b"same prefix 1"],
    pa.binary(4): [b"\0\0\0\0", b"\xff\0\0\0", b"\0\0\0\1"],
}


def key_table(data_type, row_count, seed=1):
    """Return (k: data_type, n: int64): most rows have the first value, one in nine is null."""
    import random

    chance = random.Random(f"{data_type}{seed}")
    values = KEY_VALUES[data_type]
    keys = []
    for _ in range(row_count):
        if chance.random() < 1 / 9:
            keys.append(None)
        else:
            keys.append(values[0] if chance.random() < 0.6 else chance.choice(values))
    numbers = [None if chance.random() < 0.1 else chance.randrange(-1000, 1000) for _ in range(row_count)]
    return pa.table({"k": pa.array(keys, data_type), "n": pa.array(numbers, pa.int64())})
