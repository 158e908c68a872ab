"""What a random program holds: a data set, the rows it should have, and plain Python for what operators do to them.

State        a data set beside its rows as tuples
ordered  pair_count  joined_rows  rounded       sort, size of a join, join, means cut to nine digits
"""

import datetime as dt
import decimal
import math
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

from tests.integration.row_oracle import order_key, plain

TYPES = {
    "int": pa.int64(),
    "small": pa.int32(),
    "text": pa.string(),
    "float": pa.float64(),
    "money": pa.decimal128(12, 2),
    "day": pa.date32(),
    "time": pa.timestamp("us"),
    "flag": pa.bool_(),
    "bytes": pa.binary(),
    "list": pa.list_(pa.int64()),
    "approx": pa.float64(),
}
KEYS = [kind for kind in TYPES if kind not in ("list", "approx")]
LONG = "a text that is longer than a prefix " * 3
VALUES = {
    "int": [0, 1, 1, 1, 2, -3, 7, 1000],
    "small": [0, 1, 1, 1, 2, -3, 5],
    "text": ["", "a", "a", "a", "b", "ab", "ä", LONG, LONG + "!"],
    "float": [0.0, -0.0, 1.0, 1.0, 0.25, -2.5, 1000.75, math.nan],
    "money": [decimal.Decimal(text) for text in ("0.00", "1.00", "1.00", "-0.01", "1234.50")],
    "day": [dt.date(2024, 2, 29), dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(2024, 3, 1)],
    "time": [dt.datetime(2024, 2, 29, 1), dt.datetime(2024, 2, 29, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 1)],
    "flag": [True, True, False],
    "bytes": [b"", b"a", b"a", b"\0\xff", b"x" * 70],
    "list": [[], [1], [1, None, 3]],
}


@dataclass(frozen=True)
class State:
    """A data set and what it should hold. ``order``: positions, descending, nulls last of the sort in force."""

    data: object
    columns: tuple
    rows: list
    order: tuple | None = None

    @property
    def names(self):
        return [name for name, _ in self.columns]

    @property
    def schema(self):
        return pa.schema([(name, TYPES[kind]) for name, kind in self.columns])

    def of(self, *kinds):
        return [index for index, (_, kind) in enumerate(self.columns) if kind in kinds]


def null_safe(function):
    return lambda *values: None if any(value is None for value in values) else function(*values)


def canonical(row):
    return tuple(map(plain, row))


def ordered(rows, positions, descending, nulls_last):
    result = list(rows)
    for position, down, last_ in reversed(list(zip(positions, descending, nulls_last, strict=True))):
        missing = [row for row in result if row[position] is None]
        present = [row for row in result if row[position] is not None]
        present.sort(key=lambda row, position=position: order_key(row[position]), reverse=down)
        result = present + missing if last_ else missing + present
    return result


def rounded(rows, state):
    """Return rows with means and deviations cut to nine digits."""
    places = set(state.of("approx"))
    if not places:
        return rows
    return [
        tuple(
            float(f"{value:.9g}")
            if at in places and value is not None and abs(value) > 1e-9
            else (0.0 if at in places and value is not None and value == value else value)
            for at, value in enumerate(row)
        )
        for row in rows
    ]


def pair_count(state, other, pairs):
    """Return how many pairs of rows have equal keys."""
    left = Counter(tuple(plain(row[one]) for one, _ in pairs) for row in state.rows)
    right = Counter(tuple(plain(row[two]) for _, two in pairs) for row in other.rows)
    return sum(count * right[key] for key, count in left.items())


def joined_rows(state, other, pairs, how, says, is_on):
    """Return the rows of a join, pair by pair."""
    empty_left, empty_right = (None,) * len(state.columns), (None,) * len(other.columns)
    rights = {two for _, two in pairs} if is_on else set()

    by_key = {}
    for at, right in enumerate(other.rows):
        by_key.setdefault(tuple(plain(right[two]) for _, two in pairs), []).append(at)

    def one_row(left, right):
        left = list(left)
        if is_on:
            for one, two in pairs:
                left[one] = right[two] if left[one] is None else left[one]
        return (*left, *(value for at, value in enumerate(right) if at not in rights))

    rows, matched = [], set()
    for left in state.rows:
        key = tuple(plain(left[one]) for one, _ in pairs)
        found = [] if None in key else [at for at in by_key.get(key, ()) if says((*left, *other.rows[at]))]
        matched.update(found)
        if how == "not in":
            key, keys = left[pairs[0][0]], [right[pairs[0][1]] for right in other.rows]
            if not keys or (key is not None and None not in keys and not found):
                rows.append(left)
        elif how == "semi":
            rows += [left] if found else []
        elif how == "anti":
            rows += [] if found else [left]
        else:
            rows += [one_row(left, other.rows[at]) for at in found]
            if not found and how in ("left", "full"):
                rows.append(one_row(left, empty_right))
    if how in ("right", "full"):
        rows += [one_row(empty_left, right) for at, right in enumerate(other.rows) if at not in matched]
    return rows
