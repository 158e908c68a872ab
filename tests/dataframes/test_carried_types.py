"""Values of every type go to Spark's types and come back as they were."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from engine.dataframes.carried_types import carried_schema, from_carried, is_plain, to_carried
from engine.errors import DataError, SchemaError

VALUES = {
    pa.bool_(): [True, None],
    pa.uint8(): [0, 255],
    pa.uint16(): [1, 65535],
    pa.uint32(): [None, 2**32 - 1],
    pa.uint64(): [0, 2**64 - 1],
    pa.float16(): [1.5, None],
    pa.timestamp("ns"): [datetime(1969, 12, 31, 23, 59, 59), None],
    pa.timestamp("s", "Europe/Zurich"): [datetime(2024, 7, 1, tzinfo=UTC), None],
    pa.time32("s"): [time(1, 2, 3), None],
    pa.time64("ns"): [time(23, 59, 59, 999_999), None],
    pa.duration("ms"): [timedelta(days=-1), None],
    pa.date64(): [date(1960, 2, 29), None],
    pa.large_string(): ["ä", None],
    pa.string_view(): ["", "x" * 40],
    pa.binary(2): [b"ab", None],
    pa.dictionary(pa.int8(), pa.string()): ["a", None],
    pa.decimal128(38, 10): [Decimal("-1.5"), None],
    pa.decimal256(50, 3): [Decimal("12345.678"), None],
    pa.null(): [None, None],
    pa.large_list(pa.uint8()): [[1, None], []],
    pa.list_(pa.int8(), 2): [[1, 2], [3, 4]],
    pa.map_(pa.string(), pa.uint16()): [[("a", 1)], None],
    pa.struct([("x", pa.uint64()), ("y", pa.list_(pa.date32()))]): [{"x": 2**63, "y": [date(2000, 1, 1)]}, None],
    pa.list_(pa.duration("s")): [[timedelta(days=-1), None], None],
    pa.list_(pa.timestamp("ns", "Europe/Zurich")): [[datetime(2024, 7, 1, tzinfo=UTC)], []],
    pa.struct([("t", pa.time32("s")), ("u", pa.time64("ns"))]): [{"t": time(1, 2, 3), "u": None}, None],
    pa.map_(pa.string(), pa.date64()): [[("a", date(1960, 2, 29))], None],
    pa.list_(pa.dictionary(pa.int8(), pa.string())): [["a", None, "a"], None],
    pa.list_(pa.decimal256(50, 3)): [[Decimal("12345.678"), None], None],
    pa.list_(pa.float16()): [[1.5, None], None],
    pa.list_(pa.null()): [[None, None], None],
    pa.large_list(pa.null()): [[None, None], None],
    pa.list_(pa.list_(pa.null())): [[[None], None, []], None],
    pa.map_(pa.string(), pa.null()): [[("a", None)], None],
    pa.struct([("n", pa.null()), ("l", pa.list_(pa.null()))]): [{"n": None, "l": [None]}, None],
    pa.list_(pa.string_view()): [["", "x" * 40], None],
    pa.list_(pa.binary(2)): [[b"ab", None], None],
    pa.list_(pa.list_(pa.time32("ms"), 1)): [[[time(1)], [None]], None],
}


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_decimal_of_more_digits_than_spark_has_is_named_with_its_column(is_nested):
    data_type, values = pa.decimal256(50, 3), [Decimal("1.5"), None, Decimal("1" * 45), Decimal(2)]
    if is_nested:
        data_type, values = pa.list_(data_type), [[value] for value in values]
    rows = pa.record_batch({"k": [1, 2, 3, 4], "amount": pa.array(values, data_type)})
    with pytest.raises(
        DataError, match=r"column 'amount': .*1{45}.* has more digits than Spark can hold, which are 38"
    ):
        to_carried(rows, carried_schema(rows.schema))


@pytest.mark.parametrize("data_type", VALUES, ids=str)
def test_values_come_back_as_they_went(data_type):
    rows = pa.record_batch({"v": pa.array(VALUES[data_type], data_type)})
    carried = carried_schema(rows.schema)
    there = to_carried(rows, carried)
    assert there.schema == carried
    back = from_carried(there, rows.schema)
    assert back.column(0).cast(data_type).to_pylist() == rows.column(0).to_pylist()
    last = from_carried(there.slice(1), rows.schema).column(0)
    assert last.to_pylist() == rows.column(0).to_pylist()[1:]


@pytest.mark.parametrize("data_type", [pa.timestamp("ns"), pa.time64("us"), pa.duration("s"), pa.uint64()], ids=str)
def test_order_is_kept(data_type):
    numbers = [0, 1, 5, 1000]
    rows = pa.record_batch({"v": pa.array(numbers, pa.int64()).cast(data_type)})
    (carried,) = to_carried(rows, carried_schema(rows.schema)).columns
    assert carried.to_pylist() == sorted(carried.to_pylist())


def test_what_cannot_be_carried_is_named():
    for data_type in (pa.month_day_nano_interval(), pa.struct([]), pa.list_(pa.month_day_nano_interval())):
        with pytest.raises(SchemaError, match=r"column 'odd' has .* cannot carry"):
            carried_schema(pa.schema([("odd", data_type)]))


def test_plain_types_are_those_that_spark_knows():
    assert is_plain(pa.decimal128(10, 2))
    assert not is_plain(pa.decimal128(10, -2))
    assert not is_plain(pa.uint8())
    assert not is_plain(pa.timestamp("us", "Europe/Zurich"))
