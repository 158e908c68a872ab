"""All types that a database keeps, with nulls, some, none and all: what is written is read again, value by value."""

import datetime
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from engine import Environment
from tests.databases.written import do

pytestmark = pytest.mark.integration

BOTH = {
    "i8": (pa.int8(), [-128, 127]),
    "i16": (pa.int16(), [-(2**15), 2**15 - 1]),
    "i32": (pa.int32(), [-(2**31), 2**31 - 1]),
    "i64": (pa.int64(), [-(2**63), 2**63 - 1]),
    "u32": (pa.uint32(), [0, 2**32 - 1]),
    "f64": (pa.float64(), [5e-324, -math.inf]),
    "text": (pa.string(), ["", "it's \\N ä\n\t\U0001f600"]),
    "large": (pa.large_string(), ["x" * 5000, "\x7f"]),
    "bytes": (pa.binary(), [b"", bytes(range(256))]),
}
#: what comes back of another type has the same values
POSTGRESQL = {
    **BOTH,
    "u64": (pa.uint64(), [0, 2**64 - 1]),
    "f32": (pa.float32(), [1.5, -0.0]),
    "nan": (pa.float64(), [math.nan, math.inf]),
    "yes": (pa.bool_(), [True, False]),
    "day": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    "clock": (pa.time64("us"), [datetime.time(0), datetime.time(23, 59, 59, 999999)]),
    "at": (pa.timestamp("us"), [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)]),
    "zoned": (pa.timestamp("us", "Asia/Tokyo"), [datetime.datetime(2020, 2, 29, 1, tzinfo=datetime.UTC)] * 2),
    # Of these two, drivers below 1.12 made 4412.3455 and 5000000100.
    "exact": (pa.decimal128(20, 6), [Decimal("44.123456"), Decimal("5000000000.000001")]),
    "small": (pa.decimal128(38, 38), [Decimal("0." + "9" * 38), Decimal("-0." + "0" * 37 + "1")]),
    "wide": (pa.decimal256(76, 10), [Decimal("9" * 66 + "." + "9" * 10), Decimal(0)]),
    "whole": (pa.decimal128(38, 0), [Decimal("-" + "9" * 38), Decimal(10000)]),
    "ints": (pa.list_(pa.int32()), [[], [1, None, -3]]),
    "texts": (pa.list_(pa.string()), [["a,b", '"', "NULL", None], ["{}"]]),
    "days": (pa.list_(pa.date32()), [[datetime.date(1, 1, 1)], [None]]),
}
NULLS = {"some": [True, False, True], "none": [True, True], "all": [False, False]}


def table_of(types, kept):
    """Return values of each type, of which some are null."""
    rows = []
    for data_type, values in types.values():
        in_turn = [values[at % 2] if is_kept else None for at, is_kept in enumerate(kept)]
        rows.append(pa.array(in_turn, data_type))
    return pa.table([pa.array(range(len(kept)), pa.int64()), *rows], names=["place", *types])


@pytest.mark.parametrize("nulls", [pytest.param("some", marks=pytest.mark.quick), "none", "all"])
def test_values_come_back(place, nulls):
    uri, name = place
    rows = table_of(BOTH if uri.startswith("sqlite") else POSTGRESQL, NULLS[nulls])
    with Environment({"parallelism.default": "2"}) as env:
        env.from_arrow(rows).write_database(name, uri)
        env.execute()
        found = env.read_database(name, uri).to_arrow().sort_by("place")
    assert found.column_names == rows.column_names
    for column in rows.column_names:
        assert repr(plain(found.column(column))) == repr(plain(rows.column(column))), column


def plain(column):
    """Return Python's values, moments of any zone as those of UTC, and whole decimals as integers."""
    values = column.to_pylist()
    if pa.types.is_timestamp(column.type) and column.type.tz:
        return [value and value.astimezone(datetime.UTC) for value in values]
    return [int(value) if isinstance(value, Decimal) and value == int(value) else value for value in values]


def test_integers_are_exact_in_columns_of_numbers_with_digits(postgresql_uri):
    """Drivers below 1.12 put 0.00 there."""
    pytest.importorskip("adbc_driver_postgresql")
    values = [0, 1, -10000, 2**53 + 1, 10**16, None]
    made = "CREATE TABLE with_digits (place bigint, plain numeric, digits numeric(30, 2))"
    do(postgresql_uri, "DROP TABLE IF EXISTS with_digits", made)
    with Environment({"parallelism.default": "1"}) as env:
        rows = {"place": range(len(values)), "plain": values, "digits": values}
        table = pa.table({name: pa.array(column, pa.int64()) for name, column in rows.items()})
        env.from_arrow(table).write_database("with_digits", postgresql_uri, mode="append")
        env.execute()
        found = env.read_database("with_digits", postgresql_uri).to_arrow().sort_by("place")
    assert found.column("plain").to_pylist() == [None if value is None else str(value) for value in values]
    assert found.column("digits").to_pylist() == [None if value is None else Decimal(value) for value in values]
