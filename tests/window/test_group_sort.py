"""Rows within their groups in the order of a column, against a stable sort: values, nulls, directions, sizes."""

import itertools
import random

import pyarrow as pa
import pytest

from engine.window.group_sort import sorted_in_groups

NAN = float("nan")
DRAWN = {
    "reals": (pa.float64(), lambda rng: rng.choice([None, NAN, 0.0, -0.0, rng.uniform(-5, 5), float("-inf"), 1e300])),
    "whole": (pa.int64(), lambda rng: rng.choice([None, rng.randrange(-(2**63), 2**63), rng.randrange(-9, 9)])),
    "times": (pa.timestamp("us"), lambda rng: rng.choice([None, rng.randrange(-99, 99)])),
    "nulls": (pa.int64(), lambda _: None),
    "equal": (pa.float64(), lambda _: 1.5),
}


def place(value, descending, nulls_last):
    """Where a value stands; of equal ones any is as good."""
    if value is None:
        return (2 if nulls_last else 0, 0, 0)
    is_nan = value != value
    sign = -1 if descending else 1
    return (1, sign * is_nan, 0 if is_nan else sign * value)


@pytest.mark.parametrize(("descending", "nulls_last"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("size", [1, 2, 24, 25, 400, 3000])
@pytest.mark.parametrize("kind", DRAWN)
def test_rows_are_in_order_and_equal_ones_as_they_came(kind, size, descending, nulls_last):
    data_type, draw = DRAWN[kind]
    rng = random.Random(size)
    sizes = [size, 1, size // 2 + 1]
    rows = list(range(sum(sizes)))
    rng.shuffle(rows)
    drawn = [draw(rng) for _ in rows]
    values = pa.array([None, *drawn], pa.int64() if data_type != pa.float64() else data_type).cast(data_type).slice(1)
    bounds = [0, sizes[0], sizes[0] + 1, sum(sizes)]
    found = sorted_in_groups(values, pa.array(rows, pa.int32()), pa.array(bounds), descending, nulls_last).to_pylist()
    for begin, end in itertools.pairwise(bounds):
        wanted = sorted(rows[begin:end], key=lambda row: place(drawn[row], descending, nulls_last))
        assert found[begin:end] == wanted


def test_no_groups_have_no_rows():
    found = sorted_in_groups(pa.array([], pa.int64()), pa.array([], pa.int32()), pa.array([0]), False, False)
    assert len(found) == 0
