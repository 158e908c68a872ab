"""Bounds of ranges from samples of the producers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.graph.deployment import KeyRange, RangeSamples
from engine.jobmaster.range_bounds import pick_bounds, range_of

SAMPLES = st.lists(
    st.lists(st.tuples(st.binary(max_size=3), st.integers(1, 50)), max_size=40).map(
        lambda pairs: RangeSamples(tuple(key for key, _ in sorted(pairs)), tuple(weight for _, weight in sorted(pairs)))
    ),
    max_size=4,
)


def weights(samples, bounds):
    """The weight in each range, by the definition."""
    found = [0] * (len(bounds) + 1)
    for each in samples:
        for key, weight in zip(each.keys, each.weights, strict=True):
            found[sum(key >= bound for bound in bounds)] += weight
    return found


@given(samples=SAMPLES, count=st.integers(1, 9))
def test_there_are_as_many_ranges_as_asked_for_and_each_is_near_its_share(samples, count):
    bounds = pick_bounds(samples, count)
    assert len(bounds) == count - 1
    assert list(bounds) == sorted(bounds)
    by_key = {}
    for each in samples:
        for key, weight in zip(each.keys, each.weights, strict=True):
            by_key[key] = by_key.get(key, 0) + weight
    total, heaviest = sum(by_key.values()), max(by_key.values(), default=0)
    assert sum(weights(samples, bounds)) == total
    assert max(weights(samples, bounds)) <= total / count + 2 * heaviest


def test_two_producers_share_even_ranges():
    even = RangeSamples(tuple(bytes([value]) for value in range(0, 200, 2)), (1,) * 100)
    odd = RangeSamples(tuple(bytes([value]) for value in range(1, 201, 2)), (1,) * 100)
    bounds = pick_bounds([even, odd], 4)
    assert weights([even, odd], bounds) == [50, 50, 50, 50]


@pytest.mark.parametrize("count", [2, 3, 8])
def test_a_heavy_key_is_several_bounds_and_ranges_between_them_are_empty(count):
    samples = [RangeSamples((b"a", b"m", b"z"), (1, 1000, 1))]
    bounds = pick_bounds(samples, count)
    found = weights(samples, bounds)
    assert max(found) >= 1000
    assert sum(found) == 1002
    assert found.count(0) >= count - 3


def test_without_rows_there_are_bounds_all_the_same():
    assert pick_bounds([], 3) == (b"", b"")
    assert pick_bounds([RangeSamples()], 1) == ()


def test_ranges_follow_each_other_without_a_gap():
    bounds = (b"b", b"d")
    assert [range_of(bounds, index) for index in range(3)] == [
        KeyRange(None, b"b"),
        KeyRange(b"b", b"d"),
        KeyRange(b"d", None),
    ]
    assert range_of((), 0) == KeyRange(None, None)
