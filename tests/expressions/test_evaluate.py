"""Expressions agree with plain Python, value by value."""

import datetime
import decimal
import math
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import DataError, SchemaError
from engine.expressions.evaluate import (
    compile_expression,
    compile_predicate,
    evaluate,
    project,
)
from engine.expressions.literals import make_literal
from engine.expressions.schema_bridge import type_to_ipc
from engine.graph.expression import Call, Case, Cast, ColumnRef, NamedExpression

A, B = ColumnRef("a"), ColumnRef("b")
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def call(function, *arguments, **options):
    parts = tuple(one if hasattr(one, "__struct_fields__") else make_literal(one) for one in arguments)
    return Call(function, parts, options)


def cast(operand, data_type):
    return Cast(operand, type_to_ipc(data_type), str(data_type))


def batch(a, b, a_type=None, b_type=None):
    return pa.record_batch({"a": pa.array(a, a_type), "b": pa.array(b, b_type)})


def null_safe(function):
    return lambda *values: None if any(value is None for value in values) else function(*values)


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, float) and math.isnan(other):
            assert math.isnan(one)
        else:
            assert one == other
            assert (one is None) == (other is None)
            if isinstance(other, float) and not math.isnan(other):
                assert math.copysign(1, one) == math.copysign(1, other)


INTEGERS = st.none() | st.integers(-50, 50) | st.sampled_from([-(2**31), 2**31 - 1])
FLOATS = st.none() | st.floats(-1e9, 1e9, allow_nan=False)
TEXTS = st.none() | st.text(alphabet="aAbß é\n", max_size=6)


def pairs(first, second):
    return st.lists(st.tuples(first, second), max_size=20)


ARITHMETIC = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "floor_divide": lambda a, b: a // b,
    "modulo": lambda a, b: a % b,
}


@pytest.mark.parametrize("function", ARITHMETIC)
@given(rows=pairs(INTEGERS, INTEGERS.filter(lambda value: value != 0)))
def test_integers_compute_as_python_does_and_give_int64(function, rows):
    a, b = [row[0] for row in rows], [row[1] for row in rows]
    result = evaluate(call(function, A, B), batch(a, b, pa.int32(), pa.int64()))
    assert result.type == pa.int64()
    same(result.to_pylist(), map(null_safe(ARITHMETIC[function]), a, b))


@pytest.mark.parametrize("function", ARITHMETIC)
@given(rows=pairs(FLOATS, FLOATS.filter(lambda value: value is None or abs(value) > 1e-3)))
def test_floats_compute_as_python_does(function, rows):
    a, b = [row[0] for row in rows], [row[1] for row in rows]
    result = evaluate(call(function, A, B), batch(a, b, pa.float64(), pa.float64())).to_pylist()
    for found, expected in zip(result, map(null_safe(ARITHMETIC[function]), a, b), strict=True):
        assert found == expected


@given(rows=pairs(INTEGERS, INTEGERS.filter(lambda value: value != 0)))
def test_division_gives_float64(rows):
    a, b = [row[0] for row in rows], [row[1] for row in rows]
    result = evaluate(call("divide", A, B), batch(a, b, pa.int32(), pa.int32()))
    assert result.type == pa.float64()
    same(result.to_pylist(), map(null_safe(lambda x, y: x / y), a, b))


COMPARISONS = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}


@pytest.mark.parametrize("function", COMPARISONS)
@given(rows=pairs(INTEGERS, FLOATS))
def test_comparisons_widen_integers_with_floats(function, rows):
    a, b = [row[0] for row in rows], [row[1] for row in rows]
    found = evaluate(call(function, A, B), batch(a, b, pa.int32(), pa.float64())).to_pylist()
    assert found == list(map(null_safe(COMPARISONS[function]), a, b))


@pytest.mark.parametrize("function", COMPARISONS)
@given(values=st.lists(INTEGERS), constant=st.integers(-(2**40), 2**40))
def test_a_column_compares_with_a_constant_of_any_size(function, values, constant):
    data = batch(values, values, pa.int32(), pa.int32())
    found = evaluate(call(function, A, constant), data).to_pylist()
    assert found == [None if value is None else COMPARISONS[function](value, constant) for value in values]


KLEENE = [None, True, False]


def kleene_and(a, b):
    return False if a is False or b is False else None if a is None or b is None else True


def kleene_or(a, b):
    return True if a is True or b is True else None if a is None or b is None else False


def test_logic_follows_kleene():
    a, b = [x for x in KLEENE for _ in KLEENE], KLEENE * 3
    data = batch(a, b, pa.bool_(), pa.bool_())
    assert evaluate(call("and", A, B), data).to_pylist() == list(map(kleene_and, a, b))
    assert evaluate(call("or", A, B), data).to_pylist() == list(map(kleene_or, a, b))
    assert evaluate(call("not", A), data).to_pylist() == [None if x is None else not x for x in a]


@given(values=st.lists(INTEGERS), choices=st.lists(INTEGERS, min_size=1, max_size=5))
def test_is_in_is_null_where_sql_is(values, choices):
    def expected(value):
        if value is None:
            return None
        if value in [choice for choice in choices if choice is not None]:
            return True
        return None if None in choices else False

    found = evaluate(call("is_in", A, *choices), batch(values, values, pa.int32(), pa.int32())).to_pylist()
    assert found == list(map(expected, values))


def test_is_in_without_values_finds_nothing():
    data = batch([1, None], [1, 1], pa.int64())
    assert evaluate(call("is_in", A), data).to_pylist() == [False, None]


@given(values=st.lists(INTEGERS))
def test_between_includes_both_bounds(values):
    found = evaluate(call("between", A, -3, 5.5), batch(values, values, pa.int32(), pa.int32())).to_pylist()
    assert found == [None if value is None else -3 <= value <= 5.5 for value in values]


TEXT_FUNCTIONS = [
    (call("str_length", A), len),
    (call("str_strip", A), str.strip),
    (call("str_lstrip", A), str.lstrip),
    (call("str_rstrip", A), str.rstrip),
    (call("str_strip", A, characters="ab"), lambda text: text.strip("ab")),
    (call("str_lower", A), str.lower),
    (call("str_contains", A, "a", regex=False), lambda text: "a" in text),
    (call("str_contains", A, "^a.*b$", regex=True), None),
    (call("str_starts_with", A, "a"), lambda text: text.startswith("a")),
    (call("str_ends_with", A, "é"), lambda text: text.endswith("é")),
    (call("str_replace", A, "a", "xy", regex=False), lambda text: text.replace("a", "xy")),
    (call("str_slice", A, start=1, stop=3), lambda text: text[1:3]),
    (call("str_slice", A, start=-2, stop=None), lambda text: text[-2:]),
    (call("str_concat", A, "-", A, separator="+"), lambda text: f"{text}+-+{text}"),
    (call("add", A, "!"), lambda text: f"{text}!"),
]


@pytest.mark.parametrize("large", [False, True])
@given(values=st.lists(TEXTS))
def test_string_functions_do_what_python_does(large, values):
    data_type = pa.large_string() if large else pa.string()
    data = batch(values, values, data_type, data_type)
    for expression, expected in TEXT_FUNCTIONS:
        if expected is not None:
            assert evaluate(expression, data).to_pylist() == list(map(null_safe(expected), values))


def test_regular_expressions_search_and_replace():
    data = batch(["order 12", "x"], [0, 0])
    assert evaluate(call("str_contains", A, r"\d+", regex=True), data).to_pylist() == [True, False]
    replaced = evaluate(call("str_replace", A, r"(\d)(\d)", r"\2\1", regex=True), data).to_pylist()
    assert replaced == ["order 21", "x"]


def test_nothing_is_replaced_between_all_characters_as_in_python():
    texts = ["ab", "", "日本", None, "\\"]
    for replacement in ("-", "", "\\1"):
        found = evaluate(call("str_replace", A, "", replacement), batch(texts, texts)).to_pylist()
        assert found == [None if text is None else text.replace("", replacement) for text in texts]


MOMENTS = st.none() | st.datetimes(datetime.datetime(1800, 1, 1), datetime.datetime(2200, 1, 1))
TIME_PARTS = {
    "dt_year": lambda moment: moment.year,
    "dt_quarter": lambda moment: (moment.month + 2) // 3,
    "dt_month": lambda moment: moment.month,
    "dt_week": lambda moment: moment.isocalendar()[1],
    "dt_day": lambda moment: moment.day,
    "dt_weekday": lambda moment: moment.weekday(),
    "dt_ordinal_day": lambda moment: moment.timetuple().tm_yday,
    "dt_hour": lambda moment: moment.hour,
    "dt_minute": lambda moment: moment.minute,
    "dt_second": lambda moment: moment.second,
    "dt_millisecond": lambda moment: moment.microsecond // 1000,
    "dt_microsecond": lambda moment: moment.microsecond % 1000,
}


@given(moments=st.lists(MOMENTS))
def test_parts_of_moments_are_those_of_python(moments):
    data = batch(moments, moments, pa.timestamp("us"), pa.timestamp("us"))
    for function, expected in TIME_PARTS.items():
        result = evaluate(call(function, A), data)
        assert result.type == pa.int64()
        assert result.to_pylist() == list(map(null_safe(expected), moments))


def test_truncate_goes_to_the_begin_of_the_unit_and_keeps_the_type():
    moment = datetime.datetime(2024, 8, 15, 13, 14, 15, 16)
    data = batch([moment, None], [moment.date(), None])
    begins = {
        "year": (2024, 1, 1),
        "quarter": (2024, 7, 1),
        "month": (2024, 8, 1),
        "week": (2024, 8, 12),
        "day": (2024, 8, 15),
        "hour": (2024, 8, 15, 13),
        "minute": (2024, 8, 15, 13, 14),
        "second": (2024, 8, 15, 13, 14, 15),
    }
    for unit, begin in begins.items():
        expected = datetime.datetime(*begin)
        assert evaluate(call("dt_truncate", A, unit=unit), data).to_pylist() == [expected, None]
        of_date = evaluate(call("dt_truncate", B, unit=unit), data)
        assert of_date.type == pa.date32()
        assert of_date.to_pylist() == [expected.date(), None]


def test_parts_of_a_zoned_moment_are_local():
    moment = datetime.datetime(2024, 1, 1, 23, 30, tzinfo=datetime.UTC)
    data = batch([moment], [0], pa.timestamp("us", "Europe/Berlin"))
    assert evaluate(call("dt_hour", A), data).to_pylist() == [0]
    assert evaluate(call("dt_day", A), data).to_pylist() == [2]


@pytest.mark.parametrize(
    ("function", "a", "b"),
    [
        ("add", INT64_MAX, 1),
        ("subtract", INT64_MIN, 1),
        ("multiply", INT64_MAX, 2),
        ("floor_divide", 1, 0),
        ("modulo", 1, 0),
        ("floor_divide", INT64_MIN, -1),
    ],
)
def test_overflow_and_division_by_zero_name_expression_and_row(function, a, b):
    data = batch([1] * 100 + [a] + [1] * 50, [1] * 100 + [b] + [1] * 50, pa.int64(), pa.int64())
    with pytest.raises(DataError) as error:
        evaluate(call(function, A, B), data)
    assert f"a={a}, b={b}" in str(error.value)
    assert "overflow" in str(error.value) or "divide by zero" in str(error.value)


def test_the_least_integer_modulo_minus_one_is_zero():
    assert evaluate(call("modulo", A, B), batch([INT64_MIN], [-1])).to_pylist() == [0]


def test_narrow_integers_do_not_overflow_in_their_own_type():
    assert evaluate(call("add", A, 1), batch([127], [0], pa.int8())).to_pylist() == [128]
    assert evaluate(call("negate", A), batch([-128], [0], pa.int8())).to_pylist() == [128]


def test_a_cast_that_fails_names_the_value():
    data = batch(["1", "22", "x3", "4"], [0] * 4)
    with pytest.raises(DataError, match=r"cast\(a as int64\): .*'x3'.*try_cast gives null.*in a row with a='x3'"):
        evaluate(cast(A, pa.int64()), data)
    assert evaluate(cast(B, pa.string()), data).to_pylist() == ["0"] * 4


def test_of_a_case_the_branch_is_named_that_fails_and_its_columns():
    wrong, data = cast(A, pa.int64()), batch(["x1", "2"], [1, 2])
    one, other = call("equal", B, 1), call("equal", wrong, 2)
    for whole in (
        Case(((one, cast(wrong, pa.int32())),)),
        Case(((call("equal", B, 7), B),), wrong),
        Case(((call("equal", B, 2), B), (one, Case(((one, wrong),))))),
    ):
        with pytest.raises(DataError, match=r"^cast\(a as int64\): .*in a row with a='x1'$"):
            evaluate(whole, data)
    with pytest.raises(DataError, match=r"^cast\(a as int64\) == 2: .*in a row with a='x1'$"):
        evaluate(Case(((other, B),)), data)


@pytest.mark.parametrize("source", [pa.int32(), pa.int64(), pa.uint64()])
@pytest.mark.parametrize("target", [pa.decimal128(10, 2), pa.decimal64(10, 2), pa.decimal128(38, 18)])
def test_an_integer_is_cast_to_a_decimal_that_holds_its_value(source, target):
    data = batch([12345678, None, 0], [0] * 3, source)
    assert evaluate(cast(A, target), data).to_pylist() == [decimal.Decimal(12345678), None, decimal.Decimal(0)]


def test_an_integer_that_a_decimal_does_not_hold_is_named():
    with pytest.raises(DataError, match=r"cast\(a as decimal128\(10, 2\)\): .*in a row with a=100000000"):
        evaluate(cast(A, pa.decimal128(10, 2)), batch([1, 100000000], [0, 0]))


def test_large_integers_next_to_floats_are_the_nearest_float_as_in_python():
    large = [2**53 + 1, INT64_MAX, INT64_MIN, None]
    data = batch(large, [0.5] * 4)
    assert evaluate(call("divide", A, B), data).to_pylist() == [v and v / 0.5 for v in large]
    assert evaluate(call("divide", B, A), data).to_pylist() == [v and 0.5 / v for v in large]
    assert evaluate(call("multiply", A, B), data).to_pylist() == [v and v * 0.5 for v in large]
    assert evaluate(call("greater", A, B), data).to_pylist() == [True, True, False, None]
    assert evaluate(call("less", A, 1.5), data).to_pylist() == [False, False, True, None]
    assert evaluate(call("between", A, -1.5, B), data).to_pylist() == [False, False, False, None]
    assert evaluate(call("divide", A, 2), batch([2**64 - 1], [0], pa.uint64())).to_pylist() == [(2**64 - 1) / 2]
    choice = Case(((call("greater", A, 0), A),), make_literal(-0.5))
    assert evaluate(choice, data).to_pylist() == [float(2**53 + 1), float(INT64_MAX), -0.5, -0.5]


def test_when_guards_what_would_fail():
    data = batch([10, 7, None, 5], [2, 0, 1, None])
    guarded = Case(((call("not_equal", B, 0), call("floor_divide", A, B)),), make_literal(-1))
    assert evaluate(guarded, data).to_pylist() == [5, -1, None, -1]


@given(rows=pairs(INTEGERS, INTEGERS))
def test_when_takes_the_first_true_branch(rows):
    a, b = [row[0] for row in rows], [row[1] for row in rows]
    data = batch(a, b, pa.int32(), pa.int32())
    for value in (A, call("add", A, 0)):
        branches = ((call("less", A, 0), make_literal(-1.5)), (call("less", A, B), value))
        found = evaluate(Case(branches, B), data)
        assert found.type == pa.float64()
        expected = [
            -1.5 if x is not None and x < 0 else x if x is not None and y is not None and x < y else y for x, y in rows
        ]
        assert found.to_pylist() == expected


def test_when_without_otherwise_is_null():
    assert evaluate(Case(((call("less", A, 2), B),)), batch([1, 2], ["x", "y"])).to_pylist() == ["x", None]


def test_decimals_stay_exact_beyond_38_digits():
    wide = pa.decimal128(30, 4)
    data = batch([decimal.Decimal("1.25")], [decimal.Decimal("-3.5")], wide, wide)
    assert evaluate(call("multiply", A, B), data).to_pylist() == [decimal.Decimal("-4.375")]
    assert evaluate(call("add", A, 1), data).to_pylist() == [decimal.Decimal("2.25")]
    assert evaluate(call("greater", A, 1), data).to_pylist() == [True]
    assert evaluate(call("divide", A, 2), data).to_pylist() == [0.625]


def test_constants_become_arrays_of_the_length_of_the_batch():
    data = batch([1, 2, 3], [1, 2, 3])
    for value in (5, "x", None, 1.5, b"z", datetime.date(2024, 1, 1), [1, 2]):
        result = evaluate(make_literal(value), data)
        assert result.to_pylist() == [value] * 3
        assert evaluate(make_literal(value), data.slice(0, 0)).to_pylist() == []


def test_everything_works_on_no_rows():
    data = batch([], [], pa.int64(), pa.int64())
    for function in (*ARITHMETIC, *COMPARISONS, "divide"):
        assert len(evaluate(call(function, A, B), data)) == 0
    assert len(evaluate(Case(((call("less", A, B), call("add", A, B)),)), data)) == 0


def test_a_projection_has_names_types_and_order_of_its_schema():
    data = batch([1, 2], ["x", "y"])
    schema = pa.schema([("b", pa.string()), ("twice", pa.int64())])
    named = [NamedExpression("b", B), NamedExpression("twice", call("multiply", A, 2))]
    assert project(named, data, schema).to_pydict() == {"b": ["x", "y"], "twice": [2, 4]}


def test_a_predicate_must_be_a_bool():
    schema = pa.schema([("a", pa.int64())])
    with pytest.raises(SchemaError, match="a is int64; a condition must be a bool"):
        compile_predicate(A, schema)
    nothing = compile_predicate(make_literal(None), schema)
    assert nothing(pa.record_batch({"a": [1, 2]})).to_pylist() == [None, None]


def test_only_what_can_fail_says_so():
    schema = pa.schema([("a", pa.int64()), ("b", pa.float64())])
    assert compile_expression(call("add", A, 1), schema).can_raise
    assert not compile_expression(call("add", B, 1), schema).can_raise
    assert not compile_expression(call("less", A, 1), schema).can_raise


FLOAT_EDGES = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 0.1, 1e16, -1e16, 5e-324, 1e308, -1e308, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("function", ["floor_divide", "modulo"])
def test_floor_division_of_floats_is_bit_for_bit_that_of_python(function):
    rows = [(a, b) for a in FLOAT_EDGES for b in FLOAT_EDGES if b != 0]
    a, b = [row[0] for row in rows], [row[1] for row in rows]
    data = batch([None, *a], [1.0, *b], pa.float64(), pa.float64()).slice(1)
    wanted = [ARITHMETIC[function](*row) for row in rows]
    same(evaluate(call(function, A, B), data).to_pylist(), wanted)
    for constant in (3.0, -math.inf, -0.1):
        same(evaluate(call(function, A, constant), data).to_pylist(), [ARITHMETIC[function](x, constant) for x in a])
        same(evaluate(call(function, constant, B), data).to_pylist(), [ARITHMETIC[function](constant, x) for x in b])
    assert evaluate(call(function, A, B), batch([None, 1.0], [1.0, None])).to_pylist() == [None, None]


@given(rows=pairs(st.floats(), st.floats().filter(lambda value: value != 0)))
def test_floor_division_of_any_floats_is_that_of_python(rows):
    a, b = [row[0] for row in rows], [row[1] for row in rows]
    found = evaluate(call("floor_divide", A, B), batch(a, b, pa.float64(), pa.float64())).to_pylist()
    same(found, [None if None in row else row[0] // row[1] for row in rows])


def test_text_that_is_not_utf8_is_shown_in_the_error():
    text = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(struct.pack("3i", 0, 1, 3)), pa.py_buffer(b"a\xff\xfe")]
    )
    for function in ("str_upper", "str_lower", "str_strip"):
        with pytest.raises(DataError, match=r"Invalid UTF8.*in a row with a=b'\\xff\\xfe'"):
            evaluate(call(function, A), batch(text, text))
    with pytest.raises(DataError, match=r"cast\(a as int64\).*in a row with a=b'\\xff\\xfe'"):
        evaluate(cast(A, pa.int64()), batch(text.slice(1), text.slice(1)))


def test_a_row_that_python_cannot_show_does_not_hide_what_went_wrong():
    far = pa.array([0, 2**62], pa.timestamp("s"))
    with pytest.raises(DataError, match=r"out of bounds.*in a row with a=4611686018427387904 \(timestamp\[s\]\)"):
        evaluate(cast(A, pa.timestamp("ns")), batch(far, far))


@pytest.mark.parametrize("value", [datetime.timedelta.max, datetime.timedelta.min, "\ud800", {"a": "\ud800"}])
def test_a_constant_that_arrow_cannot_hold_is_refused_by_name(value):
    with pytest.raises(SchemaError, match=r"^lit\(.*\): cannot be a constant"):
        make_literal(value)
    assert make_literal(datetime.timedelta.max, pa.duration("s")).text
    assert make_literal(pa.scalar(2**62, pa.duration("s"))).text == "4611686018427387904 (duration[s])"


def test_conditions_of_many_questions_are_compiled_once():
    schema = pa.schema([("a", pa.int64())])
    asked = [call("less", A, 10**9 + number) for number in range(600)]
    first = [compile_predicate(one, schema) for one in asked]
    assert all(compile_predicate(one, schema) is kept for one, kept in zip(asked, first, strict=True))
