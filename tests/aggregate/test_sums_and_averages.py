"""Sums and averages at the edges of their types: overflow is an error, decimals are exact and rounded once."""

import decimal

import pyarrow as pa
import pytest

from engine.errors import DataError
from tests.aggregate.group_oracle import input_table, make_calls, single, two_phases


def test_an_integer_sum_that_overflows_is_an_error_that_names_it(workshop):
    calls = make_calls(["sum"])
    for values, data_type in (
        ([2**62, 2**62], pa.int64()),
        ([-(2**63), -1], pa.int64()),
        ([2**63], pa.uint64()),
    ):
        table = input_table(("key",), [pa.int8()], calls, [data_type], [[1] * len(values), values])
        with pytest.raises(DataError, match=r"^sum\(x\) overflows int64$"):
            single(workshop, 6, table, ("key",), calls)
        table = input_table((), [], calls, [data_type], [values])
        with pytest.raises(DataError, match=r"sum\(x\) overflows int64"):
            single(workshop, 6, table, (), calls)


def test_the_largest_sums_and_averages_do_not_overflow(workshop):
    calls = make_calls(["sum", "avg"])
    values = [2**63 - 1, 0, None]
    table = input_table((), [], calls, [pa.int64()] * 2, [values, [2**63 - 1, 2**63 - 1, 2**63 - 2]])
    result, _, _ = two_phases(workshop, 6, table, (), calls)
    assert result.to_pylist() == [{"sum_0": 2**63 - 1, "avg_1": float(2**63)}]


def test_a_decimal_sum_beyond_38_digits_is_an_error(workshop):
    calls = make_calls(["sum"])
    most = decimal.Decimal("9" * 36 + ".99")
    table = input_table((), [], calls, [pa.decimal128(38, 2)], [[most]])
    assert single(workshop, 6, table, (), calls)[0].to_pylist() == [{"sum_0": most}]
    table = input_table((), [], calls, [pa.decimal128(38, 2)], [[most, decimal.Decimal("0.01")]])
    with pytest.raises(DataError, match=r"sum\(x\) overflows decimal128\(38, 2\)"):
        single(workshop, 6, table, (), calls)


def test_decimal_averages_are_rounded_half_away_from_zero(workshop):
    calls = make_calls(["avg"])
    for values, mean in ((["0.01", "0.02"], "0.02"), (["-0.01", "-0.02"], "-0.02"), (["1.00", "0", "0"], "0.33")):
        column = [decimal.Decimal(value) for value in values]
        table = input_table((), [], calls, [pa.decimal128(5, 2)], [column])
        assert single(workshop, 6, table, (), calls)[0].to_pylist() == [{"avg_0": decimal.Decimal(mean)}]


@pytest.mark.parametrize("phases", [single, two_phases])
def test_wide_decimals_add_up_to_76_digits_and_not_beyond(workshop, phases):
    calls = make_calls(["sum", "avg"])
    most = decimal.Decimal(10**76 - 1).scaleb(-2, decimal.Context(prec=80))
    for sign in (1, -1):
        with decimal.localcontext(prec=120):
            values = [sign * most, -sign * decimal.Decimal("0.02"), None, sign * decimal.Decimal("0.02")]
            mean = (sign * most / 3).quantize(decimal.Decimal("0.01"), rounding=decimal.ROUND_HALF_UP)
        table = input_table((), [], calls, [pa.decimal256(76, 2)] * 2, [values] * 2)
        assert phases(workshop, 6, table, (), calls)[0].to_pylist() == [{"sum_0": values[0], "avg_1": mean}]
        over = input_table((), [], calls, [pa.decimal256(76, 2)] * 2, [[values[0], values[3]]] * 2)
        with pytest.raises(DataError, match=r"x\) overflows decimal256\(76, 2\)"):
            phases(workshop, 6, over, (), calls)


@pytest.mark.parametrize(
    ("values", "mean"),
    [(["0.01", "0.02"], "0.02"), (["-0.01", "-0.02"], "-0.02"), (["1.00", "0", "0"], "0.33"), (["0"], "0.00")],
)
def test_averages_of_wide_decimals_are_rounded_half_away_from_zero(workshop, values, mean):
    calls = make_calls(["avg"])
    table = input_table((), [], calls, [pa.decimal256(50, 2)], [[decimal.Decimal(value) for value in values]])
    assert single(workshop, 6, table, (), calls)[0].to_pylist() == [{"avg_0": decimal.Decimal(mean)}]
