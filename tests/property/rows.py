"""Tables for the matrix: a key column of one type with nulls, duplicates and skew, and a payload."""

import datetime as dt
import decimal
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class KeyType:
    """A type of keys and a function from a number to a value of it; equal numbers give equal values."""

    name: str
    type: pa.DataType
    value: Callable[[int], Any]

    def __str__(self):
        return self.name


def _float(number):
    # The first numbers are those that are equal or ordered in their own way.
    special = [0.0, -0.0, float("nan"), -float("nan"), float("inf"), float("-inf")]
    return special[number] if number < len(special) else number * 0.37 - 40


TYPES = [
    KeyType("bool", pa.bool_(), lambda n: n % 2 == 0),
    KeyType("int8", pa.int8(), lambda n: n % 256 - 128),
    KeyType("int64", pa.int64(), lambda n: n * 7919 - 2**40),
    KeyType("uint64", pa.uint64(), lambda n: 2**64 - 1 - n * 3),
    KeyType("float64", pa.float64(), _float),
    KeyType("float32", pa.float32(), lambda n: [0.0, -0.0, float("nan")][n] if n < 3 else n * 0.5 - 9),
    KeyType("decimal", pa.decimal128(20, 2), lambda n: decimal.Decimal(n * 101 - 7000).scaleb(-2)),
    KeyType("date", pa.date32(), lambda n: dt.date(1960, 1, 1) + dt.timedelta(days=n * 11)),
    KeyType(
        "timestamp",
        pa.timestamp("us", "UTC"),
        lambda n: dt.datetime(1969, 12, 31, tzinfo=dt.UTC) + dt.timedelta(seconds=n * 997),
    ),
    KeyType(
        "string", pa.string(), lambda n: ["", "a", "a\0", "é", "zz", "common prefix"][n % 6] + str(n // 6) * (n % 3)
    ),
    KeyType("long-string", pa.large_string(), lambda n: "https://example.org/" + "x" * (n % 40) + str(n)),
    KeyType("binary", pa.binary(), lambda n: bytes([n % 256, 255 - n % 256]) * (n % 5)),
    KeyType("fixed", pa.binary(10), lambda n: n.to_bytes(4, "big") * 2 + b"\0\xff"),
]


def table(kind, nulls, duplicates, skew, rows, seed):
    """Return a table (k: key, v: int64 unique, s: string).

    nulls: none, some, all; duplicates: unique, few, one; skew: even, heavy (99 % of the rows have one key).
    """
    chosen = random.Random(seed)
    distinct = {"unique": rows, "few": max(2, rows // 6), "one": 1}[duplicates]
    keys = []
    for row in range(rows):
        number = row if duplicates == "unique" else chosen.randrange(distinct)
        if skew == "heavy" and chosen.random() < 0.99:
            number = 3
        value = kind.value(number)
        if nulls == "all" or (nulls == "some" and chosen.random() < 0.2):
            value = None
        keys.append(value)
    return pa.table(
        {
            "k": pa.array(keys, kind.type),
            "v": pa.array(range(rows), pa.int64()),
            "s": pa.array([None if row % 7 == 3 else "s" * (row % 11) for row in range(rows)], pa.string()),
        }
    )
