"""Rows that may be among the first n by several keys, beside a sort in plain Python."""

import random

import pyarrow as pa
import pytest

from engine.graph.sort_key import SortKey
from engine.records.top_rows import TopRows

TEXTS = ["a", "b", "ä", ""]


def drawn(rows, seed, domains, nulls):
    """Columns of few different keys each: texts, numbers and floats."""
    chance = random.Random(seed)
    text, half = (lambda domain: chance.choice(TEXTS[:domain]), lambda domain: chance.randrange(domain) / 2)
    draws = (text, chance.randrange, half)
    columns = []
    for draw, domain, data_type in zip(draws, domains, (pa.string(), pa.int64(), pa.float64()), strict=True):
        columns.append(pa.array([None if chance.random() < nulls else draw(domain) for _ in range(rows)], data_type))
    return columns


def rank(row, keys):
    found = []
    for value, key in zip(row, keys, strict=True):
        if value is None:
            found.append((1 if key.nulls_last else -1, 0))
            continue
        place = TEXTS_IN_ORDER.index(value) if isinstance(value, str) else value
        found.append((0, -place if key.descending else place))
    return found


TEXTS_IN_ORDER = sorted(TEXTS, key=str.encode)


@pytest.mark.parametrize("domains", [(1, 1, 1), (1, 2, 50), (2, 1000, 3), (4, 3, 2)])
@pytest.mark.parametrize("nulls", [0, 0.2])
@pytest.mark.parametrize("count", [1, 7, 40])
@pytest.mark.parametrize("descending", [(False,) * 3, (True, False, True)])
def test_the_first_rows_stay_in_their_order(domains, nulls, count, descending):
    keys = [
        SortKey(name, down, nulls_last) for name, down, nulls_last in zip("abc", descending, (1, 0, 1), strict=True)
    ]
    first, kept, rows = TopRows(keys, count, is_whole=True), [], []
    for seed in range(8):
        columns = drawn(200, seed, domains, nulls)
        mask = first.mask(columns)
        batch = list(zip(*(column.to_pylist() for column in columns), range(len(rows), len(rows) + 200), strict=True))
        rows += batch
        flags = [True] * 200 if mask is None else mask.array().to_pylist()
        kept += [row for row, stays in zip(batch, flags, strict=True) if stays]

    def in_order(listed):
        return sorted(listed, key=lambda row: rank(row[:3], keys))[:count]

    assert in_order(kept) == in_order(rows)


def test_rows_that_tie_by_the_first_key_are_left_out_by_the_next():
    """As of groups that are counted, each of which comes once."""
    keys = [SortKey("n", True), SortKey("user"), SortKey("phrase")]
    first, kept = TopRows(keys, 10, is_whole=True), 0
    users = random.Random(5).sample(range(10**6), 20_000)
    for start in range(0, 20_000, 1000):
        numbers = pa.array(users[start : start + 1000])
        mask = first.mask([pa.array([1] * 1000), numbers, pa.array(["x"] * 1000)])
        kept += 1000 if mask is None else mask.kept
    assert kept < 200
    mask = first.mask([pa.array([2] + [1] * 20), pa.array([10**7, -1] + [10**7] * 19), pa.array(["x"] * 21)])
    assert mask.array().to_pylist() == [True, True] + [False] * 19


def test_better_keys_begin_another_tie():
    keys = [SortKey("n", True), SortKey("user")]
    first = TopRows(keys, 2, is_whole=True)
    first.mask([pa.array([1] * 5), pa.array([1, 2, 3, 4, 5])])
    ties = first.mask([pa.array([2] * 5), pa.array([9, 8, 7, 6, 5])])
    assert ties.array().to_pylist() == [
        False,
        False,
        False,
        True,
        True,
    ]
    ties = first.mask([pa.array([2, 2, 2, 1]), pa.array([4, 8, 5, 0])])
    assert ties.array().to_pylist() == [
        True,
        False,
        True,
        False,
    ]
