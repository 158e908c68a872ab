"""Whether two answers are the same: the same rows, with numbers that may differ by rounding.

The order of rows is not looked at: every query sorts, and none says how rows with equal keys lie.

Held by: tests/integration/test_tpch.py
"""

import math
from decimal import Decimal

import pyarrow as pa

#: averages and quotients are floats in one engine and decimals in another
_TOLERANCE = 1e-9


def difference(found: pa.Table, wanted: pa.Table) -> str:
    """Return "" for the same answer, else what differs first."""
    if found.num_columns != wanted.num_columns or found.num_rows != wanted.num_rows:
        return f"{found.num_rows} rows of {found.num_columns} columns, not {wanted.num_rows} of {wanted.num_columns}"
    for one, other in zip(_rows(found), _rows(wanted), strict=True):
        if not all(map(_is_same, one, other)):
            return f"{one}, not {other}"
    return ""


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    columns = [[_plain(value) for value in column.to_pylist()] for column in table.columns]
    return sorted(zip(*columns, strict=True), key=_place)


def _plain(value: object) -> object:
    return float(value) if isinstance(value, int | float | Decimal) else value


def _place(row: tuple[object, ...]) -> tuple[list[str], list[float]]:
    """Return where a row belongs: by what no rounding touches first."""
    numbers = [value for value in row if isinstance(value, float)]
    return ["" if isinstance(value, float) else str(value) for value in row], numbers


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return one == other
