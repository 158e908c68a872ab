"""What Arrow would cut from Python's values is found, wherever it lies; what loses nothing is not."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from engine.records.value_check import MisfitError, check_values, may_lose

UTC, M = datetime.UTC, datetime.datetime
ZONED = M(2024, 1, 1, tzinfo=UTC)
FINE = M(2024, 1, 1, 0, 0, 0, 5)
WRONG = [
    (pa.int64(), 1.5, "a fraction is no integer"),
    (pa.int8(), Decimal("0.5"), "a fraction"),
    (pa.int32(), np.float32(1.5), "a fraction"),
    (pa.float32(), 1e300, "beyond the range of float"),
    (pa.float32(), -3.4028235677973366e38, "beyond the range of float"),
    (pa.float32(), np.float64(1e39), "beyond the range"),
    (pa.float16(), 65520.0, "beyond the range of halffloat"),
    (pa.float64(), True, "a bool is no number"),
    (pa.date32(), M(2024, 1, 1, 1), "it has a time of day"),
    (pa.date64(), ZONED, "a moment with a time zone"),
    (pa.date32(), pd.Timestamp("2024-01-01 00:00:00.000000001"), "it has a time of day"),
    (pa.timestamp("us"), ZONED, "it has a time zone, and the type has none"),
    (pa.timestamp("us", "Asia/Tokyo"), FINE, r"ZoneInfo\('Asia/Tokyo'\)"),
    (pa.timestamp("s"), FINE, "no part of a second smaller than s"),
    (pa.timestamp("ms", "UTC"), FINE, "smaller than ms"),
    (pa.timestamp("us"), pd.Timestamp("2024-01-01 00:00:00.000000001"), "smaller than us"),
    (pa.time32("s"), datetime.time(1, 2, 3, 4), "smaller than s"),
    (pa.time32("ms"), datetime.time(1, 2, 3, 4), "smaller than ms"),
    (pa.time64("us"), datetime.time(1, tzinfo=UTC), "it has a time zone"),
    (pa.duration("s"), datetime.timedelta(microseconds=5), "smaller than s"),
    (pa.duration("us"), pd.Timedelta(1, "ns"), "smaller than us"),
    (pa.list_(pa.string()), "ab", "a text is no list"),
    (pa.list_(pa.int64()), [1, None, 1.5], "a fraction"),
    (pa.list_(pa.int64()), np.array([1.5]), "a fraction"),
    (pa.large_list(pa.float32()), (1e300,), "beyond"),
    (pa.list_(pa.list_(pa.date32()), 1), [[M(2024, 1, 1, 1)]], "time of day"),
    (pa.map_(pa.int8(), pa.int8()), {1: 2.5}, "a fraction"),
    (pa.map_(pa.int8(), pa.int8()), [(1.5, 2)], "a fraction"),
    (pa.struct([("a", pa.int8())]), {"a": 1, "b": 2}, "the type has no member 'b'"),
    (pa.struct([("a", pa.int8())]), [("a", 1), ("b", 2)], "no member 'b'"),
    (pa.struct([("a", pa.int8())]), {"a": 1.5}, "in its member 'a': a fraction"),
    (pa.struct([pa.field("a", pa.int8(), False)]), {}, "its member 'a' is null, and not nullable"),
    (pa.list_(pa.struct([("a", pa.struct([("b", pa.int8())]))])), [{"a": {"c": 1}}], "member 'a': .* no member 'c'"),
    (pa.dictionary(pa.int32(), pa.float32()), 1e300, "beyond"),
]  # fmt: skip
RIGHT = [
    (pa.int64(), [2.0, np.int8(1), Decimal(3), True]),
    (pa.float32(), [0.1, 3.4028235e38, float("inf"), float("-inf"), float("nan"), 1e-300, 2, np.float64(0.5)]),
    (pa.float64(), [1e300, 1]),
    (pa.date32(), [datetime.date(2024, 1, 1), M(2024, 1, 1), pd.Timestamp("2024-01-01"), 5]),
    (pa.timestamp("us"), [FINE, 5]),
    (pa.timestamp("us", "UTC"), [FINE, ZONED]),
    (pa.timestamp("us", "Asia/Tokyo"), [ZONED]),
    (pa.timestamp("ns"), [FINE, pd.Timestamp("2024-01-01 00:00:00.000000001")]),
    (pa.time64("us"), [datetime.time.max]),
    (pa.list_(pa.int8()), [[], [1], (1,), {1}, np.array([1.0])]),
    (pa.struct([("a", pa.int8())]), [{}, {"a": None}, {"a": 1}, (1,), [("a", 1)]]),
    (pa.map_(pa.string(), pa.int8()), [{}, {"a": 1}, [("a", 1)]]),
    # what Arrow refuses by itself
    (pa.int64(), ["1", b"1", float("nan"), float("inf"), Ellipsis]),
    (pa.date32(), ["2024-01-01"]),
    (pa.list_(pa.int8()), [5, Ellipsis]),
    (pa.map_(pa.int8(), pa.int8()), [5, [1], [(1, 2, 3)]]),
    (pa.struct([("a", pa.int8())]), [5, [1], (1, 2)]),
]


@pytest.mark.parametrize(("data_type", "value", "reason"), WRONG, ids=str)
def test_what_would_be_cut_is_found_with_its_place(data_type, value, reason):
    for values, index in (([value], 0), ([None, None, value, value], 2)):
        with pytest.raises(MisfitError, match=reason) as caught:
            check_values(values, data_type)
        assert caught.value.index == index
    # inside of a list, and of a struct
    with pytest.raises(MisfitError, match=reason) as caught:
        check_values([[None], [None, value]], pa.list_(data_type))
    assert caught.value.index == 1
    with pytest.raises(MisfitError, match=f"in its member 'x': .*{reason}"):
        check_values([{"x": value}], pa.struct([("x", data_type)]))


@pytest.mark.parametrize(("data_type", "values"), RIGHT, ids=str)
def test_what_loses_nothing_and_what_arrow_refuses_is_left_to_it(data_type, values):
    check_values([None, *values], data_type)


def test_what_arrow_cuts_is_what_is_looked_for():
    """Each wrong value is one that Arrow takes; where it learns to refuse one, the check of it can go."""
    for data_type, value, _ in WRONG:
        pa.array([value], data_type, from_pandas=False)


def test_types_that_lose_nothing_are_not_looked_at():
    for data_type in (pa.string(), pa.binary(), pa.bool_(), pa.decimal128(5, 2), pa.null()):
        assert not may_lose(data_type)
    assert may_lose(pa.list_(pa.string()))
