"""Functions of numbers agree with DuckDB and with Python's math, at the edges of their types too."""

import math
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from engine import DataError, SchemaError, col, lit
from engine.expressions.decimal_widths import decimal_type
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import (
    DECIMALS,
    FLOATS,
    INT64_MAX,
    INT64_MIN,
    INTEGERS,
    by_duckdb,
    compute,
    same,
    values,
)

X = col("x")
COLUMNS = {
    "integers": pa.array(INTEGERS, pa.int64()),
    "small": pa.array([0, 5, -5, 127, -127, None], pa.int8()),
    "unsigned": pa.array([0, 5, 2**32 - 1, None], pa.uint32()),
    "floats": pa.array(FLOATS, pa.float64()),
    "decimals": pa.array(DECIMALS, pa.decimal128(6, 2)),
}
NUMBERS = list(COLUMNS)

#: ours, DuckDB's; where DuckDB raises (sqrt of a negative number) the value is left out there
AS_DUCKDB = {
    "abs": (X.abs(), "abs(x)"),
    "floor": (X.floor(), "floor(x)"),
    "ceil": (X.ceil(), "ceil(x)"),
    "trunc": (X.trunc(), "trunc(x)"),
    "round": (X.round(), "round(x)"),
    "log3": (X.log(3), "CASE WHEN x::DOUBLE < 0 THEN 'nan' WHEN x = 0 THEN '-inf' ELSE log(3, x::DOUBLE) END::DOUBLE"),
    "sqrt": (X.sqrt(), "CASE WHEN x::DOUBLE < 0 THEN 'nan'::DOUBLE ELSE sqrt(x::DOUBLE) END"),
    "cbrt": (X.cbrt(), "cbrt(x::DOUBLE)"),
    "exp": (X.exp(), "exp(x::DOUBLE)"),
    "ln": (X.ln(), "CASE WHEN x::DOUBLE < 0 THEN 'nan' WHEN x = 0 THEN '-inf' ELSE ln(x::DOUBLE) END::DOUBLE"),
    "log10": (X.log10(), "CASE WHEN x::DOUBLE < 0 THEN 'nan' WHEN x = 0 THEN '-inf' ELSE log10(x::DOUBLE) END::DOUBLE"),
    "log2": (X.log2(), "CASE WHEN x::DOUBLE < 0 THEN 'nan' WHEN x = 0 THEN '-inf' ELSE log2(x::DOUBLE) END::DOUBLE"),
    "power": (X.power(3), "pow(x::DOUBLE, 3)"),
    "atan": (X.atan(), "atan(x::DOUBLE)"),
    "atan2": (X.atan2(2), "atan2(x::DOUBLE, 2)"),
    "degrees": (X.degrees(), "degrees(x::DOUBLE)"),
    "radians": (X.radians(), "radians(x::DOUBLE)"),
    "is_nan": (X.is_nan(), "isnan(x::DOUBLE)"),
    "is_finite": (X.is_finite(), "isfinite(x::DOUBLE)"),
    "is_infinite": (X.is_infinite(), "isinf(x::DOUBLE)"),
}


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("function", AS_DUCKDB)
def test_functions_of_one_number_agree_with_duckdb(function, kind):
    expression, query = AS_DUCKDB[function]
    found, expected = values(expression, x=COLUMNS[kind]), by_duckdb(query, x=COLUMNS[kind])
    if kind == "decimals" and function in ("floor", "ceil", "round", "trunc"):
        expected = [None if value is None else Decimal(value) for value in expected]
    if kind != "floats" and function in ("floor", "ceil", "trunc"):  # DuckDB's are floats
        expected = found if kind == "integers" else expected
        assert kind != "integers" or found == INTEGERS
    # 99.99 as a decimal and as a float are a unit apart in DuckDB, which exp makes a hundred of
    same(found, expected, 2e-14 if function == "exp" else 4e-16)


@pytest.mark.parametrize("kind", ["integers", "small", "floats", "decimals"])
def test_halves_go_to_the_even_digit_where_it_is_said(kind):
    halves = {"floats": pa.array([0.5, 1.5, 2.5, -0.5, -2.5, 2.4999999999999996, None, math.inf])}
    # the integers that have a next ten
    integers = pa.array([each for each in INTEGERS if each is None or abs(each) < 2**62], pa.int64())
    column = (halves | {"integers": integers}).get(kind, COLUMNS[kind])
    for digits in (0,) if kind == "floats" else (0, 1, -1):
        found = values(X.round(digits, mode="half_to_even"), x=column)
        plain = [value if value in (None, math.inf) else round(value, digits) for value in column.to_pylist()]
        same(found, plain)
    with pytest.raises(SchemaError, match="choose one of half_away_from_zero, half_to_even"):
        X.round(mode="up")


def test_floats_keep_no_digits_with_halves_to_the_even_digit():
    with pytest.raises(SchemaError, match=r"cast to pa\.decimal128"):
        values(X.round(1, mode="half_to_even"), x=[0.25])


@pytest.mark.parametrize("base", [0, -1, 1, True, math.inf, math.nan, "2", None])
def test_a_base_that_has_no_logarithms_is_refused(base):
    with pytest.raises(SchemaError, match="a positive number other than 1"):
        X.log(base)


@pytest.mark.parametrize("name", ["log1p", "expm1"])
def test_what_is_exact_near_nothing_is_that_of_python(name):
    numbers = [0.0, -0.0, 1e-300, 1e-9, -1e-9, 0.5, 30.0, -1.0, math.nan, None]

    def expected(number):
        if number is None or (name, number) == ("log1p", -1.0):
            return number and -math.inf
        return getattr(math, name)(number)

    found = values(getattr(X, name)(), x=numbers)
    same(found, [expected(number) for number in numbers], 4e-16)


HYPERBOLIC = ["sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "asin", "acos", "atan", *HYPERBOLIC])
def test_angles_are_those_of_python(name):
    angles = [0.0, -0.0, 0.5, -1.0, 1.0, 1e6, 3.0, math.inf, math.nan, None]

    def expected(angle):
        try:
            return None if angle is None else getattr(math, name)(angle)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.copysign(math.inf, angle) if name == "atanh" and abs(angle) == 1 else math.nan

    found = values(getattr(X, name)(), x=angles)
    same(found, list(map(expected, angles)), 4e-16)
    assert compute(getattr(X, name)(), x=pa.array([0.5], pa.float32())).type == pa.float32()


@pytest.mark.parametrize("digits", [0, 1, 2, 5, 15, 16, 300, 400, -1, -2, -15, -400])
def test_halves_are_rounded_away_from_zero_to_any_digit(digits):
    exact = [0.5, 1.5, 2.5, -2.5, 0.25, -0.25, 0.125, 15.0, 25.0, -1250.0, 1e15 + 0.5, 2.0**52, 1e300, 0.0]
    found = values(X.round(digits), x=[*exact, math.inf, math.nan, None])
    for value, rounded in zip(exact, found, strict=False):
        if abs(digits) < 17 and abs(value) < 1e10:
            assert rounded == float(Decimal(value).quantize(Decimal(1).scaleb(-digits), "ROUND_HALF_UP"))
        elif digits > 0:
            assert rounded == value
        elif digits == -400:
            assert rounded == 0 or abs(value) == 1e300
    assert found[-3] == math.inf
    assert math.isnan(found[-2])
    assert found[-1] is None


@pytest.mark.parametrize("digits", [0, 1, 2, 3, 6, -1, -3])
def test_floats_are_rounded_by_the_value_that_they_have(digits):
    chance = random.Random(digits)
    numbers = [round(chance.uniform(-1e6, 1e6), chance.randrange(7)) for _ in range(2000)]
    numbers += [7.35, 6.85, -0.15, 2.675, 1.005, 0.285, 0.49999999999999994, 4503599627370495.5]
    unit = Decimal(1).scaleb(-digits)
    expected = [float(Decimal(number).quantize(unit, "ROUND_HALF_UP")) for number in numbers]
    assert values(X.round(digits), x=numbers) == expected
    assert values(X.round(digits), x=numbers[-8:-2]) == by_duckdb(f"round(x, {digits})", x=pa.array(numbers[-8:-2]))


def test_abs_and_round_of_python_take_expressions():
    assert values(abs(X), x=[-2, 2, None]) == [2, 2, None]
    assert values(round(X, 1), x=[0.25, -7.0]) == [0.3, -7.0]
    assert values(round(X), x=[2.5]) == [3.0]


def test_rounding_keeps_the_type_and_gives_decimals_the_digits_that_were_asked_for():
    assert values(X.round(-2), x=[149, 150, -150, None]) == [100, 200, -200, None]
    assert values(X.round(5), x=[INT64_MAX]) == [INT64_MAX]
    assert compute(X.round(1), x=pa.array([1.25, 3e38], pa.float32())).to_pylist()[0] == pytest.approx(1.3)
    found = compute(X.round(1), x=COLUMNS["decimals"])
    assert found.type == pa.decimal128(6, 1)
    assert compute(X.round(2), x=COLUMNS["decimals"]).type == pa.decimal128(6, 2)
    assert found.to_pylist() == [Decimal(one) for one in ("0.00", "1.30", "-1.30", "100.00", "-0.10")] + [None]
    for function in (X.floor(), X.ceil()):
        assert compute(function, x=pa.array([INT64_MAX, INT64_MIN])).to_pylist() == [INT64_MAX, INT64_MIN]


def test_what_leaves_the_type_is_an_error_that_names_the_row():
    with pytest.raises(DataError, match=r"abs\(x\): overflow.*x=-9223372036854775808"):
        values(X.abs(), x=[1, INT64_MIN])
    with pytest.raises(DataError, match=r"round\(x, -1\).*x=9223372036854775807"):
        values(X.round(-1), x=[INT64_MAX])
    with pytest.raises(DataError, match=r"shift_left\(x, 64\): shift amount"):
        values(X.shift_left(64), x=[1])
    most = pa.array([Decimal("9" * 38), Decimal(1)], pa.decimal128(38, 0))
    with pytest.raises(DataError, match=r"round\(x, -1\): 10{38} does not fit into decimal128\(38, 0\)"):
        values(X.round(-1), x=most)
    assert values(X.ceil(), x=most) == most.to_pylist()
    assert values(X.ceil(), x=pa.array([Decimal("9" * 37 + ".9")], pa.decimal128(38, 1))) == [10**37]


@pytest.mark.parametrize("precision", [3, 37, 39])
def test_decimals_carry_over_into_one_digit_more(precision):
    column = pa.array([Decimal(one) for one in ("99.9", "-99.9", "1.5", "-1.2")], _decimals(precision))
    found = {name: values(each, x=column) for name, each in {"ceil": X.ceil(), "floor": X.floor()}.items()}
    assert found == {"ceil": [100, -99, 2, -1], "floor": [99, -100, 1, -2]}
    assert values(X.round(0), x=column) == [100, -100, 2, -1]
    assert values(X.round(-2), x=column) == [100, -100, 0, 0]
    assert values(X.round(-3 - precision), x=column) == [0, 0, 0, 0]
    for each in (X.round(0), X.floor(), X.ceil(), X.round(-2)):
        assert compute(each, x=column).type == decimal_type(precision, 0)
    assert compute(X.round(1), x=column).type == compute(X.round(5), x=column).type == column.type


def _decimals(precision):
    return pa.decimal128(precision, 1) if precision <= 38 else pa.decimal256(precision, 1)


def test_the_sign_of_an_integer_is_one_and_of_a_float_a_float():
    assert values(X.sign(), x=INTEGERS) == [None if one is None else (one > 0) - (one < 0) for one in INTEGERS]
    same(values(X.sign(), x=[-2.5, 0.0, -0.0, math.inf, math.nan, None]), [-1.0, 0.0, 0.0, 1.0, math.nan, None])
    assert values(X.sign(), x=COLUMNS["decimals"]) == [0, 1, -1, 1, -1, None]
    assert compute(X.sign(), x=pa.array([2**64 - 1], pa.uint64())).to_pylist() == [1]


def test_clip_leaves_what_lies_between():
    expected = [one if one is None or one != one else min(max(one, -1), 2) for one in FLOATS]
    same(values(X.clip(-1, 2), x=FLOATS), expected)
    assert values(X.clip(lower=0), x=[-5, 5, None]) == [0, 5, None]
    assert values(X.clip(upper=col("y")), x=[-5, 5, 5], y=[0, 0, None]) == [-5, 0, None]
    assert values(X.clip(), x=[1, None]) == [1, None]
    assert compute(X.clip(0, 1.5), x=[1, 2]).to_pylist() == [1.0, 1.5]


@pytest.mark.parametrize(
    ("expression", "query"),
    [
        (X.bit_and(12), "x & 12"),
        (X.bit_or(12), "x | 12"),
        (X.bit_xor(-12), "xor(x, -12)"),
        (X.bit_not(), "~x"),
        (X.shift_right(3), "x >> 3"),
    ],
)
def test_bits_agree_with_duckdb(expression, query):
    integers = pa.array(INTEGERS, pa.int64())
    assert values(expression, x=integers) == by_duckdb(query, x=integers)


def test_bits_that_are_moved_out_are_lost():
    found = values(X.shift_left(62), x=[1, 2, 3, 4, -1, None])
    assert found == [2**62, INT64_MIN, -(2**62), 0, -(2**62), None]


def test_power_is_an_operator_too():
    assert values(X**2 + 2**X, x=[3, None]) == [17.0, None]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (col("t").sqrt(), r"sqrt\(t\): t is string; it works on numbers"),
        (col("t").abs(), r"abs\(t\): t is string; it works on numbers"),
        (X.bit_and(1.5), r"bit_and\(x, 1.5\): x is int64, 1.5 is double; it works on integers"),
        (X.clip("a", 2), "it works on numbers"),
        (lit(True).abs(), "it works on numbers"),
    ],
)
def test_what_is_no_number_is_said_before_anything_runs(expression, message):
    with pytest.raises(SchemaError, match=message):
        infer_type(expression.expression, pa.schema({"x": pa.int64(), "t": pa.string()}))
    with pytest.raises(SchemaError, match="digits are an int"):
        X.round("2")
