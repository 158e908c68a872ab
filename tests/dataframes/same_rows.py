"""Whether two tables are the same: types, and rows in any order; doubles up to the last places of sums."""

import math


def _key(row):
    # plus zero: of equal zeros the sign is no matter
    return repr([round(value, 9) + 0.0 if isinstance(value, float) and value == value else value for value in row])


def _is_same(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return one == other


def assert_same(one, other, *, in_order=False):
    """Compare two tables."""
    assert other.schema == one.schema
    rows, others = ([tuple(row.values()) for row in table.to_pylist()] for table in (one, other))
    if not in_order:
        rows.sort(key=_key)
        others.sort(key=_key)
    assert len(others) == len(rows)
    for row, other_row in zip(rows, others, strict=True):
        assert all(map(_is_same, row, other_row)), (row, other_row)
