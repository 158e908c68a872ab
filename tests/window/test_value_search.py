"""Values at places of blocks against sorted ones: how much is collected, and how often blocks are read."""

import random

import pyarrow as pa
import pytest

from engine.window.value_search import ValueSearch

NAN = float("nan")
#: how a value is drawn; at most so many passes for one place
DRAWN = {
    "random": (lambda rng: rng.uniform(-1e6, 1e6), 2),
    "equal": (lambda rng: 2.5, 5),
    "few": (lambda rng: rng.choice([0.0, -0.0, 1.0, NAN, float("-inf")]), 5),
    "last bits": (lambda rng: 1.0 + rng.randrange(512) * 2.0**-52, 5),
    "nulls": (lambda rng: rng.choice([None, None, rng.random()]), 5),
}


def in_order(values):
    return sorted((value for value in values if value is not None), key=lambda value: (value != value, value))


@pytest.mark.parametrize("rows_max", [1, 100, 5000])
@pytest.mark.parametrize("kind", DRAWN)
def test_values_are_those_of_a_sort(kind, rows_max):
    draw, passes = DRAWN[kind]
    rng = random.Random(3)
    values = [draw(rng) for _ in range(3000)]
    blocks = [pa.array([9.9, *values[start : start + 700]], pa.float64()).slice(1) for start in range(0, 3000, 700)]
    theirs = in_order(values)
    for place in (0, 1, len(theirs) // 3, len(theirs) // 2, len(theirs) - 1):
        reads = []
        search = ValueSearch(lambda reads=reads: reads.append(1) or iter(blocks), pa.float64(), rows_max)
        ours = search.at(place)
        assert ours.type == pa.float64()
        assert len(ours) == 1
        assert ours[0].as_py() == theirs[place] or theirs[place] != theirs[place] != ours[0].as_py()
        assert len(reads) <= (passes if rows_max >= 100 else 5)
        after = len(reads)
        search.at(place)
        assert len(reads) == after


@pytest.mark.parametrize("data_type", [pa.int64(), pa.timestamp("us", "UTC"), pa.time64("ns"), pa.duration("s")])
def test_whole_numbers_and_times_keep_their_type(data_type):
    numbers = [5, 1, 3, 3, 86_399]
    search = ValueSearch(lambda: iter([pa.array(numbers).cast(pa.int64()).view(data_type)]), data_type, 1)
    found = [search.at(place) for place in range(5)]
    assert {one.type for one in found} == {data_type}
    assert [one.view(pa.int64())[0].as_py() for one in found] == sorted(numbers)
