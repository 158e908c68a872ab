"""Patched arrays are what Python makes of the same values."""

import datetime
import decimal
import random

import pyarrow as pa
import pytest

from engine.formats.patched_rows import flags_of, patched

VALUES = {
    pa.int64(): [1, None, 3, 2**62],
    pa.int8(): [1, None, -3],
    pa.float64(): [0.5, None, float("inf")],
    pa.bool_(): [True, None, False],
    pa.string(): ["a", None, "", "long " * 9],
    pa.binary(): [b"a", None],
    pa.date32(): [datetime.date(2024, 1, 2), None],
    pa.timestamp("us", "UTC"): [datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC), None],
    pa.decimal128(10, 2): [decimal.Decimal("1.25"), None],
    pa.list_(pa.string()): [["a", None], [], None],
    pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int32()))]): [{"a": 1, "b": [2]}, None],
    pa.map_(pa.string(), pa.int64()): [[("k", 1)], None],
}


@pytest.mark.parametrize("data_type", VALUES, ids=str)
def test_values_of_every_type(data_type):
    chance = random.Random(3)
    for count in (1, 50):
        old = chance.choices(VALUES[data_type], k=count)
        places = sorted(chance.sample(range(count), count // 3 + (count == 1)))
        new = chance.choices(VALUES[data_type], k=len(places))
        flags = flags_of(pa.array(places, pa.int64()), count)
        assert flags.to_pylist() == [place in places for place in range(count)]
        expected = list(old)
        for place, value in zip(places, new, strict=True):
            expected[place] = value
        found = patched(pa.array(old, data_type), flags, pa.array(new, data_type))
        assert found.equals(pa.array(expected, data_type))


def test_texts_of_a_dictionary_stay_so():
    old = pa.array(["a", None, "b", "a", "b"]).dictionary_encode()
    flags = flags_of(pa.array([0, 2, 3], pa.int64()), 5)
    found = patched(old, flags, pa.array(["new", None, "b"]))
    assert pa.types.is_dictionary(found.type)
    assert found.to_pylist() == ["new", None, None, "b", "b"]
    assert found.dictionary.to_pylist() == ["a", "b", "new"]


def test_no_place_and_no_row():
    none = pa.array([], pa.int64())
    for data_type in (pa.int64(), pa.string(), pa.list_(pa.int64())):
        array = pa.array([None, None], data_type)
        assert patched(array, flags_of(none, 2), array.slice(0, 0)).equals(array)
        assert len(flags_of(none, 0)) == 0
