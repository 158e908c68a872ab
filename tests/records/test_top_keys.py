"""Keys that may be among the first n, beside a sort in plain Python."""

import random
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from engine.graph.sort_key import SortKey
from engine.records import top_keys
from engine.records.top_keys import TopKeys, TopTest

TYPES = {
    "int64": (pa.int64(), lambda chance: chance.randrange(-50, 50)),
    "uint8": (pa.uint8(), lambda chance: chance.randrange(200)),
    "double": (pa.float64(), lambda chance: chance.choice([0.0, -0.0, float("nan"), chance.randrange(-9, 9) / 2])),
    "float": (pa.float32(), lambda chance: chance.choice([float("inf"), float("nan"), chance.randrange(9) / 2])),
    "date": (pa.date32(), lambda chance: date(2000, 1, 1 + chance.randrange(28))),
    "moment": (pa.timestamp("us", "UTC"), lambda chance: datetime(2000, 1, 1 + chance.randrange(28))),
    "decimal": (pa.decimal128(12, 3), lambda chance: Decimal(chance.randrange(-99, 99)) / 4),
    "text": (pa.string(), lambda chance: chance.choice("aäzZ é") * chance.randrange(4)),
    "coded": (pa.dictionary(pa.int8(), pa.string()), lambda chance: chance.choice("abcdefgh")),
    "bool": (pa.bool_(), lambda chance: chance.random() < 0.5),
}
ORDERS = [(descending, nulls_last) for descending in (False, True) for nulls_last in (False, True)]


def ranks(values, key):
    """For each value a number; less is better, equal is equal."""
    plain = sorted({value for value in values if value is not None and value == value}, key=place_of)
    places = {value: place for place, value in enumerate(plain)}
    sign = -1 if key.descending else 1
    found = []
    for value in values:
        if value is None:
            found.append(10_000 if key.nulls_last else -10_000)
        else:
            found.append(sign * (places[value] if value == value else len(plain)))
    return found


def place_of(value):
    return value.encode() if isinstance(value, str) else value


def drawn(kind, rows, seed, nulls=0.2):
    data_type, draw = TYPES[kind]
    chance = random.Random(seed)
    return pa.array([None if chance.random() < nulls else draw(chance) for _ in range(rows)], data_type)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("descending", "nulls_last"), ORDERS)
@pytest.mark.parametrize("count", [1, 7, 40, 500])
@pytest.mark.parametrize("is_only_key", [False, True])
def test_the_first_rows_stay_and_worse_ones_go(kind, descending, nulls_last, count, is_only_key):
    key = SortKey("k", descending, nulls_last)
    test = TopTest(key, count, is_only_key=is_only_key)
    batches = [drawn(kind, 100, seed) for seed in range(6)]
    values = [value for batch in batches for value in batch.to_pylist()]
    kept = []
    for batch in batches:
        mask = test.mask(batch)
        kept += [True] * len(batch) if mask is None else mask.array().to_pylist()
    rank = ranks(values, key)
    first = sorted(range(len(values)), key=rank.__getitem__)[:count]
    assert all(kept[row] for row in first)
    assert test.rows_dropped == kept.count(False)
    if not is_only_key:
        worst = rank[first[-1]]
        assert all(kept[row] for row in range(len(values)) if rank[row] <= worst)
    if count == 1 and kind != "bool":
        assert kept.count(False) > 300


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind != "coded"])
@pytest.mark.parametrize(("descending", "nulls_last"), ORDERS)
def test_row_groups_with_a_wanted_row_are_never_ruled_out(kind, descending, nulls_last):
    key = SortKey("k", descending, nulls_last)
    keys = TopKeys(key, 10)
    keys.add(drawn(kind, 60, 1, nulls=0.1))
    keys.settle()
    for seed in range(60):
        group = drawn(kind, 3, seed + 100, nulls=0.3)
        plain = [value for value in group.to_pylist() if value is not None and value == value]
        lows, highs = (pa.array([side(plain, key=place_of) if plain else None], group.type) for side in (min, max))
        mask = keys.mask(group)
        (possible,) = keys.may_be_among(lows, highs, pa.array([group.null_count]))
        assert possible or (mask is not None and not any(mask.to_pylist()))


def test_bounds_rule_row_groups_out_and_order_them():
    keys = TopKeys(SortKey("k", descending=True), 2)
    lows, highs = pa.array([0, 50, 90, None]), pa.array([20, 80, 99, None])
    assert keys.best_first(lows, highs) == [2, 1, 0, 3]
    assert keys.may_be_among(lows, highs, pa.array([0, 0, 0, 0])) == [True] * 4
    keys.add(pa.array([70, 75, 60]))
    keys.settle()
    assert keys.may_be_among(lows, highs, pa.array([0, 0, 0, 0])) == [False, True, True, True]
    # nulls come first here
    assert keys.may_be_among(lows, highs, pa.array([1, 0, 0, 0], pa.int64())) == [True] * 4


def test_keys_that_take_too_much_are_given_up(monkeypatch):
    monkeypatch.setattr(top_keys, "KEPT_BYTES_MAX", 1000)
    keys = TopKeys(SortKey("k"), 10)
    keys.add(pa.array(["x" * 500] * 5))
    keys.add(pa.array(["a"] * 20))
    keys.settle()
    assert not keys.is_known
    assert keys.mask(pa.array(["z"])) is None
