"""Table ``x`` of the functions that people write: a row of nulls, and edges of each type."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa

_ROWS: Final = (
    # n, i, j, f, dec, s, p, d, e, ts, te, b
    (
        1,
        0,
        3,
        0.5,
        "1.50",
        "abc",
        "b",
        (2024, 2, 29),
        (2023, 1, 31),
        (2024, 2, 29, 13, 14, 15, 678901),
        (2024, 3, 1, 1),
        True,
    ),
    (2, -7, 2, -2.5, "-2.25", None, "x", None, (2024, 1, 1), None, (2020, 1, 1), False),
    (3, None, 1, None, None, "", "", (1969, 12, 31), None, (1969, 12, 31, 23, 59, 59, 999999), None, None),
    (
        4,
        5,
        None,
        3.75,
        "0.05",
        "Hello World",
        None,
        (2000, 1, 1),
        (2000, 3, 1),
        (2000, 1, 1),
        (2000, 1, 1, 0, 0, 0, 1),
        True,
    ),
    (
        5,
        100,
        -3,
        100.0,
        "99.99",
        "a,b,,c",
        ",",
        (2023, 12, 31),
        (2024, 1, 1),
        (2023, 12, 31, 23),
        (2022, 1, 1, 1, 1, 1),
        False,
    ),
    (
        6,
        12,
        12,
        1e3,
        "10.00",
        "üé 42 x7",
        "4",
        (1999, 7, 4),
        (1999, 7, 5),
        (1999, 7, 4, 12, 30),
        (1999, 7, 4, 12, 29, 59),
        True,
    ),
)
_N, _I, _J, _F, _DEC, _S, _P, _D, _E, _TS, _TE, _B = zip(*_ROWS, strict=True)


def _dates(values: tuple[tuple[int, int, int] | None, ...]) -> pa.Array:
    return pa.array([None if value is None else date(*value) for value in values], pa.date32())


def _moments(values: tuple[tuple[int, ...] | None, ...]) -> pa.Array:
    found = [None if value is None else datetime(*(*value, 0)[:3], *value[3:]) for value in values]
    return pa.array(found, pa.timestamp("us"))


TABLE: Final = pa.table(
    {
        "n": pa.array(_N, pa.int64()),
        "i": pa.array(_I, pa.int64()),
        "j": pa.array(_J, pa.int64()),
        "f": pa.array(_F, pa.float64()),
        "dec": pa.array([None if value is None else Decimal(value) for value in _DEC], pa.decimal128(9, 2)),
        "s": pa.array(_S),
        "p": pa.array(_P),
        "d": _dates(_D),
        "e": _dates(_E),
        "ts": _moments(_TS),
        "te": _moments(_TE),
        "b": pa.array(_B),
        "l": pa.array([[1, 2, 2], [], None, [3, None, 1], [7], [5, -1]], pa.list_(pa.int64())),
        "ls": pa.array([["a", "b"], [], None, ["x", None], ["q"], ["b", "a", "b"]], pa.list_(pa.string())),
        "h": pa.array(["2024-01-05", "2023-12-31", None, "1999-01-01", "2000-02-29", "1970-01-01"]),
        "js": pa.array(['{"a": 1, "b": {"c": "x"}}', '{"a": null}', None, "[1,2]", "{}", '{"b": {"c": 3}}']),
    }
)
