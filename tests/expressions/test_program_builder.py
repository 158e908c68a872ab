"""Native steps say what Arrow's functions say: random expressions over all types, nulls and edge values."""

import datetime
import decimal
import random

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine import col
from engine.errors import DataError, SchemaError
from engine.expressions.binding import Operand
from engine.expressions.compile import compile_operand
from engine.expressions.evaluate import LOWERINGS, _CompiledProjection, compile_expression
from engine.expressions.literals import make_literal
from engine.expressions.program_builder import build_program
from engine.expressions.schema_bridge import type_to_ipc
from engine.graph.expression import Call, Case, Cast, ColumnRef

D = decimal.Decimal
WIDE = decimal.Context(prec=80)
DAY = datetime.date
MOMENT = datetime.datetime


def decimals(digits, scale):
    """Edge values of a decimal type."""
    most = 10**digits - 1
    return [WIDE.scaleb(D(value), -scale) for value in (0, 1, -1, 7, 150, -250, most, -most, most // 3)]


#: a column of each type, by name: its type and the values that are tried, beside null
COLUMNS = {
    "i8": (pa.int8(), [0, 1, -1, 7, 127, -128]),
    "i32": (pa.int32(), [0, 1, -1, 5, 2**31 - 1, -(2**31)]),
    "i64": (pa.int64(), [0, 1, -1, 3, 10**6, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "u16": (pa.uint16(), [0, 1, 9, 65535]),
    "u64": (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    "f32": (pa.float32(), [0.0, -0.0, 1.5, -2.25, 3e38, float("inf"), float("nan")]),
    "f64": (pa.float64(), [0.0, -0.0, 1.5, 3.0, -7.0, 1e300, float("-inf"), float("nan")]),
    "small": (pa.decimal128(9, 2), decimals(9, 2)),
    "money": (pa.decimal128(15, 2), [D("0.00"), D("1.00"), D("-0.07"), D("90449.25"), D("9999999999999.99")]),
    "large": (pa.decimal128(38, 6), decimals(38, 6)),
    "huge": (pa.decimal256(50, 4), decimals(50, 4)),
    "day": (pa.date32(), [DAY(1970, 1, 1), DAY(1996, 2, 29), DAY(1900, 3, 1), DAY(2100, 12, 31), DAY(1, 1, 1)]),
    "millis": (pa.date64(), [DAY(1970, 1, 1), DAY(1969, 12, 31), DAY(2024, 2, 29)]),
    "moment": (pa.timestamp("us"), [MOMENT(1970, 1, 1), MOMENT(1969, 12, 31, 23, 59, 59), MOMENT(2024, 2, 29, 12)]),
    "zoned": (pa.timestamp("ms", "Europe/Berlin"), [0, 1, -1, 10**12]),
    "flag": (pa.bool_(), [True, False]),
    "text": (pa.string(), ["", "a", "Brand#12", "Brand#123", "PROMO PLATED", "aß", "ab\0", "ab"]),
    "long": (pa.large_string(), ["a", "Brand#12", "PROMO", "x" * 40]),
    "raw": (pa.binary(), [b"", b"a", b"\xff", b"ab\0"]),
}
SCHEMA = pa.schema([pa.field(name, data_type) for name, (data_type, _) in COLUMNS.items()])
NUMBERS = ["i8", "i32", "i64", "u16", "u64", "f32", "f64", "small", "money", "large", "huge"]
TIMES = ["day", "millis", "moment", "zoned"]
TEXTS = ["text", "long"]
LITERALS = {
    "text": ["", "a", "ab", "Brand#12", "PROMO", "ß", "x" * 40],
    "number": [0, 1, -1, 2, 300, 2**40, 0.5, float("nan"), D("0.05"), D("1.250")],
    "time": [DAY(1995, 3, 15), MOMENT(1996, 1, 1, 12)],
    "bool": [True, False],
}
TARGETS = {
    "number": [
        *(pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.float32(), pa.float64()),
        *(pa.decimal128(9, 2), pa.decimal128(38, 6), pa.decimal128(20, 0), pa.decimal256(60, 8)),
    ],
    "time": [pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns")],
}
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]


def call(function, *arguments, **options):
    parts = tuple(one if hasattr(one, "__struct_fields__") else make_literal(one) for one in arguments)
    return Call(function, parts, options)


def cast(operand, data_type):
    return Cast(operand, type_to_ipc(data_type), str(data_type))


def literals(kind):
    return st.sampled_from(LITERALS[kind]).map(make_literal)


def columns(names):
    return st.sampled_from(names).map(ColumnRef)


def calls(functions, *arguments):
    return st.builds(call, st.sampled_from(functions), *arguments)


def cases(conditions, values):
    branches = st.lists(st.tuples(conditions, values), min_size=1, max_size=2).map(tuple)
    return st.builds(Case, branches, st.none() | values)


def expressions(depth):
    """Strategies of numbers, times and conditions that are nested at most so deep."""
    if depth == 0:
        return columns(NUMBERS) | literals("number"), columns(TIMES) | literals("time"), columns(["flag"])
    numbers, times, conditions = expressions(depth - 1)
    number = st.one_of(
        columns(NUMBERS),
        calls(["add", "subtract", "multiply", "multiply", "floor_divide", "modulo", "divide"], numbers, numbers),
        calls(["negate"], numbers),
        calls(["dt_year", "dt_quarter", "dt_month", "dt_day", "dt_hour", "dt_minute", "dt_second"], times),
        st.builds(cast, numbers, st.sampled_from(TARGETS["number"])),
        cases(conditions, numbers),
        calls(["coalesce"], numbers, numbers),
    )
    truncated = st.builds(
        lambda one, unit: call("dt_truncate", one, unit=unit),
        columns(TIMES),
        st.sampled_from(["year", "day", "hour", "minute", "second"]),
    )
    time = st.one_of(
        columns(TIMES), truncated, st.builds(cast, times, st.sampled_from(TARGETS["time"])), cases(conditions, times)
    )
    condition = st.one_of(
        columns(["flag"]),
        calls(COMPARISONS, numbers, numbers),
        calls(COMPARISONS, times, times),
        calls(["and", "or", "equal", "not_equal"], conditions, conditions),
        calls(["not"], conditions),
        calls(["is_null", "is_not_null"], st.one_of(numbers, times, conditions, columns(["text"]))),
        calls(["between"], numbers, numbers, numbers),
        st.builds(
            lambda one, some: call("is_in", one, *some), columns(NUMBERS), st.lists(st.integers(-1, 9), min_size=1)
        ),
        calls(COMPARISONS, columns(TEXTS), columns(TEXTS) | literals("text")),
        calls(COMPARISONS, columns(["raw"]), columns(["raw"]) | st.just(make_literal(b"ab"))),
        calls(["str_starts_with", "str_ends_with", "str_contains"], columns(TEXTS), literals("text")),
        calls(["between"], columns(TEXTS), literals("text"), literals("text")),
        st.builds(lambda one, some: call("is_in", one, *some), columns(TEXTS), st.lists(literals("text"), min_size=1)),
        cases(conditions, conditions),
    )
    return number, time, condition


ANY = st.one_of(*expressions(3))


@st.composite
def batches(draw):
    """Some rows of every column, repeated over several blocks now and then, and cut out of longer ones."""
    count, times, skipped = draw(st.integers(0, 12)), draw(st.sampled_from([1, 1, 1, 300])), draw(st.integers(0, 9))
    chance = random.Random(draw(st.integers(0, 10**6)))
    arrays = []
    for data_type, values in COLUMNS.values():
        choices = [*values[: chance.randint(1, len(values))], None]
        arrays.append(pa.array(chance.choices(choices, k=count) * times, data_type))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA).slice(skipped)


def outcome(function, batch):
    """Type and exact values, or the error."""
    try:
        found = function(batch)
    except DataError as error:
        return str(error)
    return found.type, len(found), repr(found.to_pylist())


@settings(max_examples=200)
@given(expression=ANY, batch=batches())
def test_an_expression_has_the_values_and_errors_that_arrow_gives(expression, batch):
    try:
        compiled = compile_expression(expression, SCHEMA)
    except SchemaError:
        assume(False)
    assert outcome(compiled, batch) == outcome(compiled.by_arrow, batch)


def program_of(*parts):
    operands = [compile_operand(part, SCHEMA) for part in parts]
    return build_program(operands, LOWERINGS)


def rows_of(**values):
    arrays = [pa.array(values.get(name, []) or [None] * len(next(iter(values.values()))), data_type)
              for name, (data_type, _) in COLUMNS.items()]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


MONEY, I64 = ColumnRef("money"), ColumnRef("i64")
NATIVE = {
    "revenue": call("multiply", MONEY, call("subtract", 1, ColumnRef("small"))),
    "charge": call("multiply", call("multiply", MONEY, call("subtract", 1, MONEY)), call("add", 1, MONEY)),
    "days": call(
        "and", call("greater_equal", ColumnRef("day"), DAY(1994, 1, 1)), call("less", ColumnRef("day"), DAY(1995, 1, 1))
    ),
    "range": call("between", MONEY, D("0.05"), D("0.07")),
    "mixed": call("less", MONEY, 24),
    "set": call("is_in", I64, 1, 2, None),
    "year": call("dt_year", ColumnRef("moment")),
    "choice": Case(((call("not_equal", I64, 0), call("floor_divide", 10, I64)),), make_literal(0)),
    "nothing": call("coalesce", I64, ColumnRef("i32"), 0),
    "promo": Case(((call("str_starts_with", ColumnRef("text"), "PROMO"), MONEY),), make_literal(D(0))),
    "names": call("is_in", ColumnRef("text"), "MAIL", "SHIP", "a"),
    "part": call("str_contains", ColumnRef("long"), "12", regex=False),
    "share": call("divide", MONEY, ColumnRef("small")),
    "minute": call("dt_truncate", ColumnRef("moment"), unit="minute"),
    "cast": cast(cast(ColumnRef("f64"), pa.int64()), pa.decimal128(20, 2)),
}


@pytest.mark.parametrize("name", NATIVE)
def test_what_has_steps_is_not_evaluated_by_arrow(name):
    program, positions = program_of(NATIVE[name])
    assert positions == [0]
    assert all(operand.form.function == "column" for operand in program.inputs)


def test_what_has_no_steps_is_an_input():
    text = call("str_length", ColumnRef("text"))
    program, _ = program_of(call("add", text, call("multiply", text, 2)))
    assert [operand.form.function for operand in program.inputs] == ["str_length"]
    batch = rows_of(text=["a", None, "abc"])
    assert program(batch)[0].to_pylist() == [3, None, 9]


def test_an_expression_that_is_arrow_s_alone_has_no_program():
    assert program_of(call("str_length", ColumnRef("text")), MONEY) == (None, [])


def test_a_single_step_that_arrow_has_faster_is_arrow_s():
    text = ColumnRef("text")
    assert program_of(call("add", I64, 5)) == (None, [])
    assert program_of(call("less", text, "b")) == (None, [])
    assert program_of(call("equal", text, text)) == (None, [])
    for steps in (call("less", I64, 5), call("less", MONEY, 5), call("not_equal", "b", text)):
        assert program_of(steps)[1] == [0]


def test_a_projection_with_a_shared_part_is_made_by_steps_alone():
    part = call("multiply", MONEY, call("subtract", 1, MONEY))
    shared = [part, call("multiply", part, MONEY)]
    assert _CompiledProjection(shared, SCHEMA).is_native
    of_texts = call("str_slice", ColumnRef("text"), start=0, stop=2)
    both = [call("equal", of_texts, "ab"), call("equal", call("add", part, 1), 2), call("str_length", of_texts)]
    assert not _CompiledProjection(both, SCHEMA).is_native


def test_a_part_of_several_expressions_is_one_step():
    alone, _ = program_of(NATIVE["revenue"])
    both, positions = program_of(NATIVE["revenue"], MONEY, call("add", NATIVE["revenue"], 1))
    assert positions == [0, 2]
    assert both.step_count < 2 * alone.step_count + 2


def test_values_that_no_row_reaches_do_not_fail():
    program, _ = program_of(NATIVE["choice"])
    assert program(rows_of(i64=[0, 5, None, -3]))[0].to_pylist() == [0, 2, 0, -4]
    unguarded, _ = program_of(call("floor_divide", 10, I64))
    assert unguarded(rows_of(i64=[5, 0])) is None
    assert unguarded(rows_of(i64=[5, None]))[0].to_pylist() == [2, None]


def test_a_choice_with_a_value_that_arrow_must_not_see_everywhere_is_arrow_s():
    parsed = cast(ColumnRef("text"), pa.int64())
    case = Case(((call("equal", ColumnRef("text"), "7"), parsed),), make_literal(0))
    program, _ = program_of(call("add", call("multiply", case, 1), 1))
    assert [operand.form.function for operand in program.inputs] == ["case"]
    assert program(rows_of(text=["7", "x", None]))[0].to_pylist() == [8, 1, 1]


def test_a_program_that_gave_up_in_vain_is_not_asked_again():
    expression = call("multiply", ColumnRef("huge"), MONEY)
    compiled = compile_expression(expression, SCHEMA)
    batch = rows_of(huge=decimals(50, 4), money=decimals(15, 2))
    for _ in range(2):
        assert compiled(batch).equals(compiled.by_arrow(batch))


def test_constants_are_computed_once_and_fail_with_the_rows():
    bounds = call("subtract", D("0.06"), D("0.01")), call("add", D("0.06"), D("0.01"))
    folded, _ = program_of(call("between", MONEY, *bounds))
    plain, _ = program_of(call("between", MONEY, D("0.05"), D("0.07")))
    assert folded.step_count == plain.step_count
    unfit = compile_expression(call("add", I64, cast(make_literal(300), pa.int8())), SCHEMA)
    with pytest.raises(DataError, match="300 not in range"):
        unfit(rows_of(i64=[]))


def test_operands_without_form_are_known_by_themselves():
    operand = Operand(pa.int64(), lambda batch: batch.column(2))
    added = compile_operand(call("add", I64, call("multiply", I64, 1)), SCHEMA)
    program, positions = build_program([operand, added], LOWERINGS)
    assert positions == [1]
    assert program(rows_of(i64=[4]))[0].to_pylist() == [8]


def test_texts_among_constants_may_be_empty():
    batch = pa.RecordBatch.from_pydict({"s": ["a", "", None]})
    empty = call("and", call("equal", ColumnRef("s"), make_literal("")), call("is_not_null", ColumnRef("s")))
    assert compile_expression(empty, batch.schema)(batch).to_pylist() == [False, True, False]


@pytest.mark.parametrize("digits", [37, 38, 39, 47])
@pytest.mark.parametrize("sign", [1, -1])
def test_constants_of_more_than_128_bits_are_left_to_arrow(digits, sign):
    constant = sign * WIDE.subtract(D(10) ** digits, D("0.5"))
    values = [constant, WIDE.add(constant, D(1)), D("1.5"), None]
    schema = pa.schema([("x", pa.decimal256(50, 2))])
    batch = pa.record_batch([pa.array(values, schema.field("x").type)], schema=schema)
    wanted = [None if value is None else (value < constant, value == constant) for value in values]
    found = [compile_expression(each.expression, schema)(batch) for each in (col("x") < constant, col("x") == constant)]
    pairs = zip(*(each.to_pylist() for each in found), strict=True)
    assert [None if pair == (None, None) else pair for pair in pairs] == wanted


def test_columns_that_are_inputs_are_chosen_from_the_batch():
    codes = pa.array(["a", "b", "a"]).dictionary_encode()
    batch = pa.RecordBatch.from_pydict({"codes": codes, "y": [1, 2, None], "rest": [[1], [], None], "x": [10, 20, 30]})
    compiled = compile_expression((col("x") * 2 - col("y")).expression, batch.schema)
    assert compiled(batch).to_pylist() == [19, 38, None]
    assert compiled(batch.slice(1)).to_pylist() == [38, None]
    assert compiled.by_arrow(batch).equals(compiled(batch))
