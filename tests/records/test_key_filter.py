"""A filter finds every value that was given, of any type, and few others."""

import math
import random
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from engine.records.key_filter import key_filter, merged
from engine.records.row_mask import Mask

SPECIAL = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf]
TYPES = {
    "near": (pa.int64(), lambda chance: chance.randrange(-700, 700)),
    "far": (pa.int64(), lambda chance: chance.randrange(-(1 << 63), 1 << 63)),
    "ends": (pa.int64(), lambda chance: chance.choice([-(1 << 63), (1 << 63) - 1, 0])),
    "int8": (pa.int8(), lambda chance: chance.randrange(-128, 128)),
    "uint16": (pa.uint16(), lambda chance: chance.randrange(1 << 16)),
    "uint64": (pa.uint64(), lambda chance: (1 << 64) - 1 - chance.randrange(5000)),
    "date": (pa.date32(), lambda chance: date(1969, 1, 1) + timedelta(days=chance.randrange(2000))),
    "bool": (pa.bool_(), lambda chance: chance.random() < 0.5),
    "double": (pa.float64(), lambda chance: chance.choice([*SPECIAL, chance.random()])),
    "decimal": (pa.decimal128(12, 2), lambda chance: Decimal(chance.randrange(-(10**9), 10**9)) / 100),
    "text": (pa.string(), lambda chance: "é" * chance.randrange(3) + str(chance.randrange(500))),
    "long text": (pa.large_string(), lambda chance: "x" * chance.randrange(60, 70) + str(chance.randrange(50))),
    "bytes": (pa.binary(4), lambda chance: chance.randbytes(4)),
}


def drawn(name, seed, rows, offset=0):
    data_type, draw = TYPES[name]
    chance = random.Random(seed)
    values = [None if chance.random() < 0.1 else draw(chance) for _ in range(rows)]
    return pa.array(values, data_type).slice(offset)


def form(value):
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def values_of(*arrays):
    return {form(value) for array in arrays for value in array.to_pylist() if value is not None}


def check(found, asked, values):
    """No value is missed, no null is found; return how many others are found."""
    wrong = 0
    for value, is_found in zip(asked.to_pylist(), found.mask(asked).array().to_pylist(), strict=True):
        if value is None:
            assert not is_found
        elif form(value) in values:
            assert is_found
        else:
            wrong += is_found
    return wrong


@pytest.mark.parametrize("name", TYPES)
def test_values_that_were_given_are_found_and_nulls_are_not(name):
    arrays = [drawn(name, 1, 300), drawn(name, 2, 400, offset=5)]
    asked = drawn(name, 3, 3000, offset=3)
    found = key_filter(arrays, 1 << 20)
    values = values_of(*arrays)
    assert found.value_count == sum(len(array) - array.null_count for array in arrays)
    wrong = check(found, asked, values)
    assert wrong == 0 if found.is_exact else wrong < 0.05 * len(asked)
    # the values themselves, at another offset
    assert check(found, arrays[0].slice(7), values) == 0


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("rows", [(300, 0), (0, 0), (1, 900), (2500, 40)])
def test_filters_have_a_union(name, rows):
    arrays = [drawn(name, seed, count) for seed, count in enumerate(rows)]
    found = merged([key_filter([array], 1 << 20) for array in arrays], 1 << 20)
    asked = pa.concat_arrays([*arrays, drawn(name, 9, 2000)])
    assert check(found, asked, values_of(*arrays)) < 0.1 * len(asked)


def test_an_exact_filter_and_a_bloom_filter_have_a_union():
    near, far = pa.array(range(100)), pa.array([1 << 40, -(1 << 50), 7])
    found = merged([key_filter([near], 1 << 20), key_filter([far], 1 << 20)], 1 << 20)
    assert not found.is_exact
    assert check(found, pa.concat_arrays([near, far]), values_of(near, far)) == 0


def test_an_empty_filter_finds_nothing():
    found = key_filter([pa.nulls(9, pa.int64()), pa.nulls(0, pa.int64())], 64)
    assert found.mask(pa.array([0, 1, None] * 5)).kept == 0
    assert found.may_lie_between(pa.array([0, None]), pa.array([1, None])) == [False, False]


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 63, 64, 1023, 1024, 1025])
@pytest.mark.parametrize("step", [1, 1 << 40])
def test_masks_have_a_row_for_each_value(rows, step):
    keys = pa.array(np.arange(0, rows, 2) * step)
    mask = key_filter([keys], 1 << 20).mask(pa.array(np.arange(rows) * step))
    assert len(mask) == rows
    assert mask.array().to_pylist()[::2] == [True] * ((rows + 1) // 2)
    assert mask.kept < rows // 2 + 1 + max(2, rows // 20)


def test_what_is_too_large_is_not_made():
    keys = pa.array(np.arange(100_000) * (1 << 30))
    assert key_filter([keys], 90_000) is None
    assert key_filter([keys], 1 << 20).size_bytes <= 1 << 20
    half = [key_filter([keys.slice(0, 50_000)], 1 << 20), key_filter([keys.slice(50_000)], 1 << 20)]
    assert merged(half, 90_000) is None


def test_where_bits_have_no_place_a_bloom_filter_may_have():
    keys = pa.array(np.arange(0, 50_000_000, 500))
    assert key_filter([keys], 1 << 24).is_exact
    found = key_filter([keys], 1 << 24, 1 << 20)
    assert not found.is_exact
    assert found.mask(keys).kept == len(keys)
    half = [key_filter([keys.slice(0, 50_000)], 1 << 24), key_filter([keys.slice(50_000)], 1 << 24)]
    assert merged(half, 1 << 24).is_exact
    assert not merged(half, 1 << 24, 1 << 20).is_exact


def test_a_bloom_filter_lets_few_others_pass():
    keys = pa.array(np.random.default_rng(1).integers(0, 1 << 62, 100_000))
    others = pa.array(np.random.default_rng(2).integers(0, 1 << 62, 100_000))
    found = key_filter([keys], 1 << 20)
    assert not found.is_exact
    assert found.mask(others).kept < 0.02 * len(others)


@pytest.mark.parametrize(
    ("keys", "lows", "highs", "expected"),
    [
        (pa.array([5, 9, 90]), [0, 6, 6, 91, None, -9], [4, 8, 9, 99, 3, 100], [False, False, True, False, True, True]),
        (pa.array([5, 1 << 50]), [6, 0], [7, 4], [True, False]),
        (pa.array(["b", "cc"]), ["a", "c", "cd"], ["ab", "c", "z"], [False, True, False]),
        (pa.array([Decimal("1.50")]), [Decimal("1.51"), Decimal("-1")], [Decimal("9"), Decimal("1.5")], [False, True]),
        (pa.array([0.5]), [7.0], [8.0], [True]),
        (pa.array([date(2020, 1, 5)]), [date(2020, 1, 6)], [date(2021, 1, 1)], [False]),
    ],
)
def test_bounds_between_which_no_value_lies_are_known(keys, lows, highs, expected):
    found = key_filter([keys], 1 << 20)
    lows, highs = pa.array(lows, keys.type), pa.array(highs, keys.type)
    assert found.may_lie_between(lows, highs) == expected


def test_a_column_of_another_type_is_refused():
    with pytest.raises(TypeError, match="int64"):
        key_filter([pa.array([1])], 64).mask(pa.array([1], pa.int32()))


@pytest.mark.parametrize("shift", [0, 1, 63, 64, 65, 4_000_001])
def test_few_keys_far_apart_are_told_exactly_and_so_are_those_of_several_filters(shift):
    chance = random.Random(shift)
    parts = [
        pa.array([chance.randrange(3_000_000) + offset for _ in range(20)] + [offset], pa.int64())
        for offset in (-500 + shift, -500, -500 + 2 * (shift % 1000))
    ]
    filters = [key_filter([part], 1 << 20) for part in parts]
    whole = merged(filters, 1 << 20)
    assert whole.is_exact
    values = {value for part in parts for value in part.to_pylist()}
    asked = sorted(value + step for value in values for step in (-65, -64, -63, -1, 0, 1, 63, 64, 65))
    found = whole.mask(pa.array(asked, pa.int64())).array().to_pylist()
    assert [value for value, is_found in zip(asked, found, strict=True) if is_found] == [
        value for value in asked if value in values
    ]


def test_an_exact_filter_that_joins_a_larger_one_gives_each_of_its_keys():
    near = key_filter([pa.array([-70, -7, 0, 57, 1 << 20], pa.int64())], 1 << 20)
    far = key_filter([pa.array([1 << 40, -(1 << 50)], pa.int64())], 1 << 20)
    assert near.is_exact
    assert not far.is_exact
    whole = merged([near, far], 1 << 20)
    assert not whole.is_exact
    assert all(whole.mask(pa.array([-70, -7, 0, 57, 1 << 20, 1 << 40, -(1 << 50)], pa.int64())).array().to_pylist())


@pytest.mark.parametrize("data_type", [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us")])
@pytest.mark.parametrize(("nulls", "offset", "rows"), [(False, 0, 100), (True, 3, 100), (True, 67, 20_000)])
@pytest.mark.parametrize("run", [1, 64, 77, 1000])
def test_a_column_of_a_batch_is_looked_up_where_it_lies(data_type, nulls, offset, rows, run):
    small = pa.int64() if pa.types.is_temporal(data_type) and data_type != pa.date32() else pa.int32()
    values = [None if nulls and row % 7 == 0 else row // run % 90 for row in range(rows + offset)]
    column = pa.array(values, small).cast(data_type).slice(offset)
    found = key_filter([pa.array([3, 5, 88], small).cast(data_type)], 1 << 20)
    batch = pa.record_batch({"other": pa.array(range(rows)), "k": column})
    mask = found.mask_of(batch, b"k")
    assert mask.array().to_pylist() == [value in (3, 5, 88) for value in values[offset:]]
    assert mask.kept == found.mask(column).kept
    sliced = found.mask_of(batch.slice(9), b"k")
    assert sliced.array().equals(mask.array().slice(9))
    for every in (1, 3, 64, rows):
        within = Mask(pa.array([row % every == 0 for row in range(rows)]))
        of_few = found.mask_of(batch, b"k", within)
        assert of_few.array().equals(mask.both(within).array())
        assert of_few.kept == of_few.array().true_count
    with pytest.raises(pa.ArrowInvalid, match=f"a mask of {rows} rows for {rows - 9}"):
        found.mask_of(batch.slice(9), b"k", within)


def test_other_columns_are_left_to_the_array():
    found = key_filter([pa.array([1, 2])], 1 << 20)
    assert found.mask_of(pa.record_batch({"k": pa.array([1], pa.int32())}), b"k") is None
    assert found.mask_of(pa.record_batch({"k": pa.array([1]).dictionary_encode()}), b"k") is None
    assert found.mask_of(pa.record_batch({"n": pa.array([1])}), b"k") is None
    bloom = key_filter([pa.array(np.arange(1000) * (1 << 40))], 1 << 20)
    assert bloom.mask_of(pa.record_batch({"k": pa.array([1])}), b"k") is None
