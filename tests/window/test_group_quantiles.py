"""Selected values against sorted ones: shapes of values that mislead a selection, nulls, NaN, all sizes of groups."""

import itertools
import random

import pyarrow as pa
import pytest

from engine.window.group_quantiles import DigitCounts, group_quantiles, value_at, words_of

NAN, INFINITY = float("nan"), float("inf")
SHARES = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)
#: name: how a value of a group of so many is drawn
REALS = {
    "random": lambda rng, _: rng.uniform(-1e6, 1e6),
    "few": lambda rng, _: rng.choice([0.0, -0.0, 1.0, 2.5]),
    "equal": lambda _, __: 3.25,
    "all magnitudes": lambda rng, _: rng.choice([-1, 1]) * 10.0 ** rng.randrange(-300, 300),
    "ends": lambda rng, _: rng.choice([NAN, -INFINITY, INFINITY, 0.0, 1e-320]),
    "one apart": lambda rng, count: 1.0 if rng.randrange(count) else 1e300,
    "last bits": lambda rng, _: 1.0 + rng.randrange(64) * 2.0**-52,
}
WHOLES = {
    "random": lambda rng, _: rng.randrange(-(2**63), 2**63),
    "near": lambda rng, _: rng.randrange(-300, 300),
    "ends": lambda rng, _: rng.choice([-(2**63), 2**63 - 1, 0, -1]),
}


def in_order(value):
    return (value != value, value if value == value else 0.0)


def beside(values, share):
    """Values on both sides of a share, and how far between them it is."""
    values = sorted((value for value in values if value is not None), key=in_order)
    if not values:
        return None, None, 0.0
    place = share * (len(values) - 1)
    low = int(place)
    return values[low], values[low + (place > low)], place - low


def same(left, right):
    return left == right or (left is not None and right is not None and left != left and right != right)


def check(groups, data_type):
    """Groups of values, laid out in a random order of rows."""
    rows = [(number, value) for number, group in enumerate(groups) for value in group]
    random.Random(1).shuffle(rows)
    values = pa.array([None, *(value for _, value in rows)], data_type).slice(1)
    places = [[] for _ in groups]
    for row, (number, _) in enumerate(rows):
        places[number].append(row)
    order = pa.array([row for rows in places for row in rows], pa.int32())
    bounds = [0]
    for group in places:
        bounds.append(bounds[-1] + len(group))
    for share in SHARES:
        low, high, fraction = group_quantiles(values, order, pa.array(bounds, pa.int64()), share)
        low.validate(full=True)
        ours = zip(low.to_pylist(), high.to_pylist(), fraction.to_pylist(), strict=True)
        for group, (lower, upper, part) in zip(groups, ours, strict=True):
            theirs = beside(group, share)
            assert same(lower, theirs[0]), (share, group)
            assert same(upper, theirs[1]), (share, group)
            assert part == theirs[2]


@pytest.mark.parametrize("size", [1, 2, 23, 24, 25, 26, 300, 5000])
@pytest.mark.parametrize("kind", REALS)
def test_reals_are_those_of_a_sort(kind, size):
    rng = random.Random(size)
    check([[REALS[kind](rng, size) for _ in range(size)] for _ in range(3)], pa.float64())


@pytest.mark.parametrize("size", [1, 25, 26, 3000])
@pytest.mark.parametrize("kind", WHOLES)
def test_whole_numbers_are_those_of_a_sort(kind, size):
    rng = random.Random(size)
    check([[WHOLES[kind](rng, size) for _ in range(size)] for _ in range(3)], pa.int64())


def test_nulls_do_not_count_and_groups_without_values_have_none():
    rng = random.Random(7)
    groups = [[rng.choice([None, rng.random()]) for _ in range(size)] for size in (1, 3, 40, 900)]
    check([*groups, [None], [None] * 70, [NAN, None], [1.0]], pa.float64())


def test_values_keep_their_type():
    values = pa.array([3, 1, 2], pa.timestamp("us", "UTC"))
    low, high, _ = group_quantiles(values, pa.array([0, 1, 2], pa.int32()), pa.array([0, 3]), 0.5)
    assert low.type == values.type
    assert low.equals(high) and low[0].value == 2


def test_no_groups_have_no_values():
    low, _, fraction = group_quantiles(pa.array([], pa.float64()), pa.array([], pa.int32()), pa.array([0]), 0.5)
    assert len(low) == len(fraction) == 0


def test_rows_that_lie_group_by_group_need_no_order():
    values = pa.array([9.0, 5.0, 1.0, None, 3.0, 2.0]).slice(1)
    low, high, fraction = group_quantiles(values, None, pa.array([1, 4, 5]), 0.5)
    assert (low.to_pylist(), high.to_pylist(), fraction.to_pylist()) == ([1.0, 2.0], [3.0, 2.0], [0.5, 0.0])


@pytest.mark.parametrize("kind", REALS)
def test_runs_in_chunks_are_as_if_their_rows_lay_together(kind):
    rng = random.Random(5)
    sizes = [rng.choice([1, 2, 30, 3000]) for _ in range(40)]
    groups = [rng.randrange(4) for _ in sizes]
    values = [[rng.choice([None, REALS[kind](rng, size)]) for _ in range(size)] for size in sizes]
    # runs 0 to 9, none, and 10 to 39; the first value of an array is none of its chunk
    parts = ([each for run in values[begin:end] for each in run] for begin, end in ((0, 10), (10, 10), (10, 40)))
    chunks = pa.chunked_array([pa.array([0.5, *part], pa.float64()).slice(1) for part in parts])
    order = pa.array(sorted(range(40), key=lambda run: groups[run]), pa.int32())
    bounds = pa.array([0, *itertools.accumulate(groups.count(group) for group in range(4))], pa.int64())
    starts = pa.array([0, *itertools.accumulate(sizes)], pa.int64())
    together = [run for group in range(4) for run, of in enumerate(groups) if of == group]
    whole = pa.array([each for run in together for each in values[run]], pa.float64())
    ends = [0, *itertools.accumulate(sum(sizes[run] for run in together if groups[run] == group) for group in range(4))]
    for share in SHARES:
        for begin in (0, 2):
            found = group_quantiles(chunks, order, bounds.slice(begin), share, starts)
            theirs = group_quantiles(whole, None, pa.array(ends[begin:], pa.int64()), share)
            assert [str(each.to_pylist()) for each in found] == [str(each.to_pylist()) for each in theirs]


def test_kernels_of_values_that_do_not_lie_together():
    values = pa.array([None, -1, 0, 1, 65_536, 65_537, None, 2**40]).slice(1)
    counts = DigitCounts(16, (1 << 31))  # words of values from 0 to 2**32 - 1: their upper 32 bits
    counts.add(values)
    counts.add(values.slice(0, 0))
    assert [counts.find(place) for place in range(4)] == [(0, 0, 2), (0, 0, 2), (1, 2, 2), (1, 2, 2)]
    with pytest.raises(AssertionError, match="fewer"):
        counts.find(4)
    assert words_of(values, 16, (1 << 47) + 1).to_pylist() == [65_536, 65_537]
    assert words_of(values, 64, 0).to_pylist() == [-1, 0, 1, 65_536, 65_537, 2**40]
    assert [value_at(values, place)[0].as_py() for place in range(6)] == [-1, 0, 1, 65_536, 65_537, 2**40]
    with pytest.raises(AssertionError, match="fewer"):
        value_at(values, 6)
    with pytest.raises(AssertionError, match="8 bytes"):
        value_at(pa.array([1], pa.int32()), 0)
