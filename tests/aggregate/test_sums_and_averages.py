"""Sums and averages at the edges of their types: overflow is an error, decimals are exact and rounded once."""

import decimal
import random
from fractions import Fraction

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


DECIMALS = [
    (pa.decimal128(38, 2), ["1.00", "1.01"]),
    (pa.decimal128(38, 0), [str(2**120 + 2**67 + 1)]),
    (pa.decimal128(38, 0), [str(2**120 + 2**67)]),
    (pa.decimal128(38, 0), [str(2**120 + 3 * 2**67)]),
    (pa.decimal128(38, 0), [str(2**54 - 1)]),
    (pa.decimal128(38, 0), ["-" + "9" * 38]),
    (pa.decimal128(38, 38), ["1e-38", "0", "0"]),
    (pa.decimal128(38, 20), ["0.1", "0.2", "0.3", "-7.00000000000000000001"]),
    (pa.decimal128(5, 2), ["-0.01", "-0.02"]),
    (pa.decimal128(5, 2), ["0", "0"]),
    (pa.decimal256(76, 2), ["9" * 74 + ".99", "-0.01", "0.01"]),
    (pa.decimal256(76, 76), ["-1e-76", "0", "0"]),
    (pa.decimal256(50, 2), ["0.01", "0.02", "-0.05"]),
]


@pytest.mark.parametrize("phases", [single, two_phases])
@pytest.mark.parametrize(("data_type", "texts"), DECIMALS, ids=str)
def test_the_average_of_decimals_is_the_float_nearest_to_the_exact_one(workshop, phases, data_type, texts):
    calls = make_calls(["avg"])
    values = [decimal.Decimal(text) for text in texts]
    mean = sum(map(Fraction, values)) / len(values)
    table = input_table((), [], calls, [data_type], [[None, *values]])
    assert phases(workshop, 6, table, (), calls)[0].to_pylist() == [{"avg_0": float(mean)}]


def test_averages_of_many_decimals_are_each_the_nearest_float(workshop):
    calls = make_calls(["avg"])
    chance = random.Random(7)
    keys, values = [], []
    for key in range(400):
        for _ in range(chance.randrange(1, 6)):
            keys.append(key)
            values.append(decimal.Decimal(chance.randrange(-(10 ** chance.randrange(1, 37)), 10**36)).scaleb(-13))
    table = input_table(("key",), [pa.int64()], calls, [pa.decimal128(38, 13)], [keys, values])
    found = {row["key"]: row["avg_0"] for row in single(workshop, 60, table, ("key",), calls)[0].to_pylist()}
    groups = {
        key: [Fraction(value) for one, value in zip(keys, values, strict=True) if one == key] for key in range(400)
    }
    assert found == {key: float(sum(group) / len(group)) for key, group in groups.items()}


@pytest.mark.parametrize("phases", [single, two_phases])
def test_wide_decimals_add_up_to_76_digits_and_not_beyond(workshop, phases):
    calls = make_calls(["sum", "avg"])
    most = decimal.Decimal(10**76 - 1).scaleb(-2, decimal.Context(prec=80))
    for sign in (1, -1):
        with decimal.localcontext(prec=120):
            values = [sign * most, -sign * decimal.Decimal("0.02"), None, sign * decimal.Decimal("0.02")]
            mean = float(Fraction(sign * most) / 3)
        table = input_table((), [], calls, [pa.decimal256(76, 2)] * 2, [values] * 2)
        assert phases(workshop, 6, table, (), calls)[0].to_pylist() == [{"sum_0": values[0], "avg_1": mean}]
        over = input_table((), [], calls, [pa.decimal256(76, 2)] * 2, [[values[0], values[3]]] * 2)
        with pytest.raises(DataError, match=r"x\) overflows decimal256\(76, 2\)"):
            phases(workshop, 6, over, (), calls)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("data_type", "digits"), [(pa.decimal128(38, 0), 38), (pa.decimal256(76, 0), 76)])
def test_sums_end_where_the_digits_end(workshop, data_type, digits, sign):
    calls = make_calls(["sum"])
    end, word = 10**digits, 2**64
    pairs = [
        *((end - 1 - other, other) for other in (0, 1, word - 1, word, 5 * word, end // 2)),
        *((end - other, other) for other in (1, word, end // 2)),
        (end - 1, end - 1),
        (end - 1, -(end - 1)),
    ]
    for pair in pairs:
        numbers = [decimal.Decimal(sign * number) for number in pair]
        table = input_table((), [], calls, [data_type], [numbers])
        if abs(sum(pair)) < end:
            result = single(workshop, 6, table, (), calls)[0].to_pylist()
            assert result == [{"sum_0": decimal.Decimal(sign * sum(pair))}]
        else:
            with pytest.raises(DataError, match=r"sum\(x\) overflows"):
                single(workshop, 6, table, (), calls)
