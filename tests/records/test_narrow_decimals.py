"""Narrow decimals: the type that 64 bits have, what is one, and values made wide again."""

from decimal import Decimal

import pyarrow as pa
import pytest

from engine.records.narrow_decimals import is_narrow, narrow_type, wide_batch

D = Decimal
TYPES = [pa.decimal128(5, 2), pa.decimal128(18, 0), pa.decimal128(38, 4), pa.decimal256(61, 6), pa.decimal128(9, -3)]


@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_what_is_narrow_is_made_wide(data_type):
    narrow = narrow_type(data_type)
    assert (narrow.bit_width, narrow.scale) == (64, data_type.scale)
    assert is_narrow(narrow, data_type)
    assert not is_narrow(data_type, data_type)
    assert not is_narrow(pa.decimal64(narrow.precision, data_type.scale + 1), data_type)
    assert not is_narrow(pa.int64(), data_type)
    values = [0, None, 12345, -1]
    array = pa.Array.from_buffers(narrow, 4, pa.array(values, pa.int64()).buffers())
    batch = pa.record_batch([array, pa.array([1, 2, 3, 4])], names=["d", "n"])
    schema = pa.schema([("n", pa.int64()), ("d", data_type)])
    wide = wide_batch(batch, schema)
    assert wide.schema == pa.schema([("d", data_type), ("n", pa.int64())])
    unit = D(1).scaleb(-data_type.scale)
    assert wide["d"].to_pylist() == [None if value is None else value * unit for value in values]
    assert wide_batch(wide, schema) is wide


def test_more_digits_than_the_type_promises_stay_all_of_them():
    values = [2**63 - 1, -(2**63)]
    array = pa.Array.from_buffers(pa.decimal64(18, 6), 2, pa.array(values, pa.int64()).buffers())
    for data_type in (pa.decimal128(38, 6), pa.decimal256(61, 6)):
        wide = wide_batch(pa.record_batch([array], names=["d"]), pa.schema([("d", data_type)]))
        assert wide["d"].to_pylist() == [D(value).scaleb(-6) for value in values]


def test_decimals_of_64_bits_that_are_meant_so_stay():
    batch = pa.record_batch([pa.array([D("1.25")], pa.decimal64(9, 2))], names=["d"])
    assert wide_batch(batch, batch.schema).schema == batch.schema
