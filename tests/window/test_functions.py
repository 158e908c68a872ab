"""Types of window functions and the form that kernels read."""

import pyarrow as pa
import pytest

from engine.errors import NotYetSupportedError, SchemaError
from engine.window.functions import from_kernel, kernel_type, result_type, to_kernel


def test_results_have_the_types_of_the_table():
    assert result_type("rank", None) == pa.int64()
    assert result_type("cume_dist", None) == pa.float64()
    assert result_type("lag", pa.list_(pa.int8())) == pa.list_(pa.int8())
    assert result_type("first_value", pa.dictionary(pa.int8(), pa.string())) == pa.string()
    assert result_type("sum", pa.uint8()) == pa.int64()
    assert result_type("sum", pa.decimal128(5, 2)) == pa.decimal128(38, 2)
    assert result_type("avg", pa.int8()) == pa.float64()
    assert result_type("max", pa.binary(3)) == pa.binary(3)
    assert result_type("count", pa.list_(pa.int8())) == pa.int64()


def test_what_a_function_does_not_take_is_said():
    with pytest.raises(SchemaError, match="takes numbers"):
        result_type("sum", pa.string())
    with pytest.raises(SchemaError, match="no order"):
        result_type("min", pa.list_(pa.int8()))
    with pytest.raises(NotYetSupportedError):
        result_type("count_distinct", pa.int8())
    with pytest.raises(NotYetSupportedError):
        result_type("sum", pa.decimal256(50, 0))


def test_values_come_back_from_kernel_form_as_they_went():
    for data_type, values in {
        pa.bool_(): [True, None, False],
        pa.int8(): [-1, None, 5],
        pa.uint64(): [2**64 - 1, None, 0],
        pa.float16(): [1.5, None, -2.0],
        pa.date32(): [1, None, -400],
        pa.date64(): [86_400_000, None, 0],
        pa.time32("ms"): [1, None, 5],
        pa.time64("ns"): [1, None, 5],
        pa.timestamp("ns", "Europe/Berlin"): [1, None, -5],
        pa.duration("s"): [1, None, -5],
        pa.decimal128(5, 1): ["1.5", None, "-2.0"],
        pa.string(): ["ä", None, ""],
        pa.binary(1): [b"a", None, b"b"],
    }.items():
        column = pa.array(values, pa.string()).cast(data_type) if pa.types.is_decimal(data_type) else None
        column = pa.array(values, data_type) if column is None else column
        form = kernel_type(data_type)
        assert from_kernel(to_kernel(column, form), data_type).equals(column), data_type
    assert kernel_type(pa.list_(pa.int8())) is None
