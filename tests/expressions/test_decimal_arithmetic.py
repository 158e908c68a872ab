"""Decimals are reckoned with exactly, against Python's: in 38 digits, or an error that shows what has more."""

import decimal
import operator
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from engine import DataError, coalesce, col, greatest, when
from engine.expressions.decimal_kernels import quotients, remainders
from engine.expressions.evaluate import compile_expression
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import compute, values

X, Y = col("x"), col("y")
EXACT = decimal.Context(prec=200)
INTEGERS = {pa.int8(): 10, pa.uint16(): 10, pa.int32(): 10, pa.uint32(): 10, pa.int64(): 19, pa.uint64(): 20}


@st.composite
def decimal_types(draw, most=38):
    precision = draw(st.integers(1, most) | st.sampled_from([1, 9, 18, 19, 37, 38]))
    return precision, draw(st.integers(0, precision))


@st.composite
def decimals(draw, precision, scale):
    digits = draw(st.integers(1, precision))
    number = draw(st.integers(-(10**digits) + 1, 10**digits - 1) | st.sampled_from([0, 1, -1, 10**precision - 1]))
    return EXACT.scaleb(Decimal(number), -scale)


def expected_type(name, left, right):
    """Return precision and scale by the rules, written down once more: Hive's, kept within 38 digits."""
    (p1, s1), (p2, s2) = left, right
    if name == "%":
        precision, scale = p2 - s2 + max(s1, s2), max(s1, s2)
    elif name == "//":
        precision, scale = p1 - s1 + s2 + 1, 0
    elif name == "*":
        precision, scale = p1 + p2 + 1, s1 + s2
        if precision > 38:
            scale = min(scale, 20)
    else:
        precision, scale = max(p1 - s1, p2 - s2) + max(s1, s2) + 1, max(s1, s2)
    return min(precision, 38), scale


def aligned(one, other):
    scale = -min(one.as_tuple().exponent, other.as_tuple().exponent)
    return *(int(EXACT.scaleb(each, scale)) for each in (one, other)), scale


def floored_remainder(one, other):
    left, right, scale = aligned(one, other)
    return EXACT.scaleb(Decimal(left % right), -scale)


def floored_quotient(one, other):
    left, right, _ = aligned(one, other)
    return Decimal(left // right)


OPERATORS = {
    "+": (lambda one, other: one + other, EXACT.add),
    "-": (lambda one, other: one - other, EXACT.subtract),
    "*": (lambda one, other: one * other, EXACT.multiply),
    "%": (lambda one, other: one % other, floored_remainder),
    "//": (lambda one, other: one // other, floored_quotient),
}


@pytest.mark.parametrize("name", OPERATORS)
@given(data=st.data(), left=decimal_types(), right=decimal_types())
@example(data=None, left=(38, 2), right=(38, 20))
@example(data=None, left=(38, 38), right=(38, 38))
@example(data=None, left=(38, 0), right=(38, 38))
def test_results_are_exact_or_an_error_that_shows_them(name, data, left, right):
    if data is None:
        one, other = (EXACT.scaleb(Decimal(10**precision - 1), -scale) for precision, scale in (left, right))
    else:
        one, other = data.draw(decimals(*left)), data.draw(decimals(*right))
    assume(name not in ("%", "//") or other)
    of, exact = OPERATORS[name]
    expression, wanted = of(X, Y), expected_type(name, left, right)
    columns = {"x": pa.array([one, None], pa.decimal128(*left)), "y": pa.array([other, other], pa.decimal128(*right))}
    schema = pa.schema({key: each.type for key, each in columns.items()})
    assert infer_type(expression.expression, schema) == pa.decimal128(*wanted)
    found = exact(one, other)
    fits = EXACT.scaleb(EXACT.abs(found), wanted[1]) < 10 ** wanted[0]
    fits = fits and found == found.quantize(Decimal(1).scaleb(-wanted[1]), context=EXACT)
    compiled = compile_expression(expression.expression, schema)
    batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    for compute_by in (compiled, compiled.by_arrow):
        if fits:
            assert compute_by(batch).to_pylist() == [found, None]
            continue
        with pytest.raises(DataError, match=r"does not fit into decimal128\(38, \d+\): cast to fewer digits before"):
            compute_by(batch)


@pytest.mark.parametrize("data_type", INTEGERS, ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_an_integer_counts_as_a_decimal_of_so_many_digits(name, data_type):
    digits = (INTEGERS[data_type], 0)
    schema = pa.schema([("x", pa.decimal128(18, 2)), ("y", data_type)])
    of, exact = OPERATORS[name]
    assert infer_type(of(X, Y).expression, schema) == pa.decimal128(*expected_type(name, (18, 2), digits))
    assert infer_type(of(Y, X).expression, schema) == pa.decimal128(*expected_type(name, digits, (18, 2)))
    most = 2**data_type.bit_width - 1 if str(data_type).startswith("u") else 2 ** (data_type.bit_width - 1) - 1
    found = values(of(X, Y), x=pa.array([Decimal("2.50")], pa.decimal128(18, 2)), y=pa.array([most], data_type))
    assert found == [exact(Decimal("2.50"), Decimal(most))]


def test_a_sum_of_products_of_prices_and_integers_has_38_digits():
    prices, counts = pa.array([Decimal("99.99")], pa.decimal128(18, 2)), pa.array([2**63 - 1], pa.int64())
    assert compute(X * Y, x=prices, y=counts).type == pa.decimal128(38, 2)
    assert values(X * Y, x=prices, y=counts) == [Decimal("99.99") * (2**63 - 1)]
    assert compute(X * 2, x=prices).type == pa.decimal128(20, 2)
    assert compute(X * col("s"), x=prices, s=pa.array([5], pa.int16())).type == pa.decimal128(29, 2)


def test_values_that_are_not_asked_for_are_no_errors():
    large = pa.array([Decimal(10**37), Decimal(2)], pa.decimal128(38, 0))
    expression = when(X < 10).then(X * X).otherwise(0)
    assert values(expression, x=large) == [0, 4]
    with pytest.raises(DataError, match=r"x \* x: 1(0{74}) does not fit.*in a row with x=Decimal\('1(0{37})'\)"):
        values(X * X, x=large)
    # one that fits in 128 bits and not in 38 digits
    with pytest.raises(DataError, match=r"1(0{38}) does not fit into decimal128\(38, 0\)"):
        values(X * 10, x=large)
    assert values(X * 10, x=pa.array([None, 2], pa.decimal128(38, 0))) == [None, 20]


def test_products_of_spark_s_default_decimals_keep_18_digits_before_the_point():
    spark = pa.decimal128(38, 18)
    assert compute(X * Y, x=pa.array([Decimal("12.5")], spark), y=pa.array([Decimal("10.25")], spark)).equals(
        pa.array([Decimal("128.125")], pa.decimal128(38, 20))
    )
    with pytest.raises(DataError, match=r"0\.0{20}10+ does not fit into decimal128\(38, 20\)"):
        values(X * Y, x=pa.array([Decimal("1e-11")], spark), y=pa.array([Decimal("1e-10")], spark))


def test_decimals_that_have_more_digits_keep_them_up_to_76():
    wide = pa.array([Decimal("1.5"), None], pa.decimal256(50, 5))
    for expression, data_type, found in [
        (X * X, pa.decimal256(76, 10), "2.25"),
        (X * 2, pa.decimal256(52, 5), "3"),
        (X + X, pa.decimal256(51, 5), "3"),
        (X % 2, pa.decimal128(6, 5), "1.5"),
        (2 % X, pa.decimal256(50, 5), "0.5"),
        (X // 2, pa.decimal256(46, 0), "0"),
        (-X // 1, pa.decimal256(46, 0), "-2"),
        (X.round(2), pa.decimal256(48, 2), "1.5"),
        (X.floor(), pa.decimal256(46, 0), "1"),
    ]:
        made = compute(expression, x=wide)
        assert (made.type, made.to_pylist()) == (data_type, [Decimal(found), None]), expression
    most = pa.array([EXACT.scaleb(Decimal(10**50 - 1), -5)], pa.decimal256(50, 5))
    with pytest.raises(DataError, match=r"9{50}80{44}\.01 does not fit|does not fit into decimal256\(76, 10\)"):
        values(X * X, x=most)
    narrow = pa.array([Decimal("1.5")], pa.decimal256(20, 2))
    assert compute(X + 1, x=narrow).type == pa.decimal128(21, 2)


SIZES = st.integers(-(10**76) + 1, 10**76 - 1) | st.integers(-50, 50)


@given(rows=st.lists(st.tuples(SIZES, SIZES), min_size=1))
@pytest.mark.parametrize(("divided", "exact"), [(remainders, operator.mod), (quotients, operator.floordiv)])
def test_divisions_of_any_size_are_those_of_python(divided, exact, rows):
    assume(all(other for _, other in rows))
    wide = pa.decimal256(76, 0)
    left, right = (pa.array([*map(Decimal, column), None], wide) for column in zip(*rows, strict=True))
    found = [*(Decimal(exact(one, other)) for one, other in rows), None]
    assert divided(left, right).to_pylist() == found
    assert divided(left.slice(len(rows) - 1), right.slice(len(rows) - 1)).to_pylist() == found[-2:]


def test_a_division_by_zero_is_an_error():
    zero = pa.array([Decimal("0.0"), None], pa.decimal128(3, 1))
    with pytest.raises(DataError, match=r"divide by zero; in a row with x=Decimal\('0.0'\)"):
        values(1 % X, x=zero)
    with pytest.raises(DataError, match=r"divide by zero; in a row with x=Decimal\('0.0'\)"):
        values(1 // X, x=zero)
    assert values(1 % X, x=zero.slice(1)) == [None]
    assert values(Decimal("0.5") % X, x=pa.array([3, -3, None], pa.int64())) == [Decimal("0.5"), Decimal("-2.5"), None]


def test_common_types_of_results_have_38_digits_and_comparisons_all():
    columns = {
        "x": pa.array([Decimal(10**30), Decimal(2)], pa.decimal128(38, 2)),
        "y": pa.array([Decimal(1), Decimal(2)], pa.decimal128(38, 20)),
    }
    assert values(X > Y, **columns) == [True, False]
    assert values(X == Y, **columns) == [False, True]
    for expression in (coalesce(X, Y), greatest(X, Y), when(X > Y).then(X).otherwise(Y)):
        small = {name: each.slice(1) for name, each in columns.items()}
        assert compute(expression, **small).equals(pa.array([Decimal(2)], pa.decimal128(38, 20)))
        with pytest.raises(DataError, match=r"10{30}\.00 does not fit into decimal128\(38, 20\)"):
            values(expression, **columns)
