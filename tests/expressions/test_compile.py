"""What has no meaning is refused with the expression, the types it met, and what to do."""

import datetime
import functools
import time
from decimal import Decimal

import pyarrow as pa
import pytest

from engine import col, interval, lit, when
from engine.errors import SchemaError
from engine.expressions.common_type import common_type
from engine.expressions.evaluate import evaluate
from engine.expressions.infer import infer_schema, infer_type, with_constants
from engine.expressions.literals import literal_scalar, make_literal
from engine.expressions.schema_bridge import is_key_type, to_arrow_schema, to_plan_schema
from engine.expressions.text import expression_text
from engine.graph.expression import Call, Case, ColumnRef, Literal, NamedExpression

SCHEMA = pa.schema([("price", pa.float64()), ("name", pa.string()), ("size", pa.int32()), ("day", pa.date32())])


def call(function, *arguments, **options):
    parts = tuple(one if hasattr(one, "__struct_fields__") else make_literal(one) for one in arguments)
    return Call(function, parts, options)


PRICE, NAME, SIZE, DAY = map(ColumnRef, SCHEMA.names)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (ColumnRef("prize"), "no column 'prize'; did you mean 'price'? There are: price, name, size, day"),
        (ColumnRef("NAME"), "no column 'NAME'; did you mean 'name'?"),
        (call("subtract", NAME, 1), "name - 1: cannot subtract: name is string, 1 is int64"),
        (
            call("add", DAY, 1),
            "day + 1: cannot add: day is date32[day], 1 is int64: a number of days is datetime",
        ),
        (call("less", NAME, 1), "name < 1: name is string, 1 is int64; they have no common type: cast one side"),
        (call("and", PRICE, SIZE), "put comparisons in parentheses"),
        (call("str_upper", SIZE), "upper(size): size is int32; .str works on strings; cast to pa.string() first"),
        (call("dt_year", NAME), "year(name): name is string; it works on dates and timestamps"),
        (call("dt_truncate", DAY, unit="decade"), "choose one of year, quarter"),
        (call("str_contains", NAME, "(", regex=True), "missing )"),
        (call("str_contains", NAME, NAME), "must be a constant string"),
        (call("is_in", SIZE, "x"), "no common type"),
        (call("is_in", SIZE, SIZE), "holds constants only"),
        (call("add", call("less", SIZE, 1), 1), "bool is not a number"),
        (call("no_such", SIZE), "there is no function 'no_such'"),
        (call("negate", NAME), "only numbers and durations can be negated"),
        (Case(((PRICE, NAME),)), "when(price): a condition is a bool, this is double"),
        (Case(((call("less", SIZE, 1), NAME),), SIZE), "no common type: name is string, size is int32"),
    ],
)
def test_errors_say_what_is_wrong_and_what_to_do(expression, message):
    with pytest.raises(SchemaError) as error:
        infer_type(expression, SCHEMA)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.uint8(), pa.int8(), pa.int16()),
        (pa.uint32(), pa.int8(), pa.int64()),
        (pa.uint64(), pa.int64(), pa.decimal128(20, 0)),
        (pa.int64(), pa.float32(), pa.float64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(10, 2), pa.decimal128(12, 6), pa.decimal128(14, 6)),
        (pa.decimal128(38, 2), pa.decimal128(38, 20), pa.decimal256(56, 20)),
        (pa.decimal128(10, 2), pa.float64(), pa.float64()),
        (pa.string(), pa.large_string(), pa.large_string()),
        (pa.binary(4), pa.binary(5), pa.binary()),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ns")),
        (pa.timestamp("s"), pa.timestamp("s", "UTC"), None),
        (pa.time32("s"), pa.time64("us"), pa.time64("us")),
        (pa.null(), pa.string(), pa.string()),
        (pa.string(), pa.int64(), None),
        (pa.bool_(), pa.int8(), None),
        (pa.list_(pa.int8()), pa.list_(pa.int64()), None),
    ],
)
def test_the_common_type_is_the_same_from_both_sides(left, right, expected):
    assert common_type(left, right) == expected
    assert common_type(right, left) == expected
    assert common_type(left, left) == left


EVERY_TYPE = [
    pa.null(),
    pa.bool_(),
    pa.int8(),
    pa.uint64(),
    pa.float16(),
    pa.decimal128(10, 2),
    pa.decimal256(50, 2),
    pa.date32(),
    pa.time64("ns"),
    pa.timestamp("us", "Europe/Berlin"),
    pa.duration("ms"),
    pa.string(),
    pa.large_binary(),
    pa.binary(7),
    pa.list_(pa.int32()),
    pa.struct([("x", pa.int8())]),
    pa.map_(pa.string(), pa.int64()),
]


def test_schemas_survive_the_way_into_a_plan_and_back():
    fields = [pa.field(f"c{index}", data_type, index % 2 == 0) for index, data_type in enumerate(EVERY_TYPE)]
    fields.append(pa.field("noted", pa.string(), metadata={"note": "kept"}))
    schema = pa.schema(fields)
    plan_schema = to_plan_schema(schema)
    assert to_arrow_schema(plan_schema).equals(schema, check_metadata=True)
    assert [column.nullable for column in plan_schema.columns] == [field.nullable for field in schema]


def test_equal_schemas_share_one_form():
    one, same = (pa.schema([("x", pa.int8())], metadata={"note": note}) for note in "ab")
    assert to_plan_schema(one) is to_plan_schema(same)
    assert to_plan_schema(pa.schema([pa.field("x", pa.int8(), nullable=False)])) is not to_plan_schema(one)


def test_an_extension_type_that_is_registered_later_is_seen():
    class Place(pa.ExtensionType):
        def __init__(self):
            super().__init__(pa.int32(), "drey.place")

        def __hash__(self):
            return 0

        def __arrow_ext_serialize__(self):
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, _storage, _serialized):
            return cls()

    message = pa.schema([("x", Place())]).serialize()
    assert to_plan_schema(pa.ipc.read_schema(message)).columns[0].type_text == "int32"
    pa.register_extension_type(Place())
    try:
        assert to_plan_schema(pa.ipc.read_schema(message)).columns[0].type_text != "int32"
    finally:
        pa.unregister_extension_type("drey.place")


def test_metadata_within_a_type_is_that_of_its_own_column():
    def schema(metadata):
        return pa.schema([("x", pa.list_(pa.field("item", pa.struct([pa.field("a", pa.int8(), metadata=metadata)]))))])

    for each in (schema({"id": "1"}), schema(None), schema({"id": "2"})):
        assert to_arrow_schema(to_plan_schema(each)).equals(each, check_metadata=True)


def test_equal_types_have_equal_bytes_whatever_the_name():
    one = to_plan_schema(pa.schema([("x", pa.int64())])).columns[0]
    other = to_plan_schema(pa.schema([pa.field("y", pa.int64(), nullable=False)])).columns[0]
    assert one.ipc == other.ipc


def test_widths_and_keys_are_known_without_arrow():
    by_type = {str(one): to_plan_schema(pa.schema([("x", one)])).columns[0] for one in EVERY_TYPE}
    assert (by_type["decimal256(50, 2)"].width_bytes, by_type["decimal256(50, 2)"].width_is_exact) == (32, True)
    assert by_type["bool"].width_bytes == 1
    assert not by_type["string"].width_is_exact
    assert [one for one in EVERY_TYPE if not is_key_type(one)] == EVERY_TYPE[-3:]


def test_a_name_that_is_there_twice_is_refused():
    with pytest.raises(SchemaError, match="'x' is there twice"):
        to_plan_schema(pa.schema([("x", pa.int8()), ("x", pa.int8())]))


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        (5, pa.int64()),
        (2**63, pa.uint64()),
        (True, pa.bool_()),
        (1.5, pa.float64()),
        (None, pa.null()),
        ("x", pa.string()),
        (datetime.date(2024, 1, 2), pa.date32()),
        (datetime.timedelta(seconds=3), pa.duration("us")),
    ],
)
def test_literals_are_exact(value, data_type):
    scalar = literal_scalar(make_literal(value))
    assert scalar.type == data_type
    assert scalar.as_py() == value


def test_literals_that_do_not_fit_are_refused():
    with pytest.raises(SchemaError, match="does not fit into 64 bits"):
        make_literal(2**64)
    with pytest.raises(SchemaError, match="cannot be a constant"):
        make_literal(object())
    with pytest.raises(SchemaError, match="a function is no constant; @udf makes a function usable in expressions"):
        make_literal(lambda row: row)
    with pytest.raises(SchemaError, match="is not int8"):
        make_literal(300, pa.int8())
    with pytest.raises(SchemaError, match=r"lit\(1e\+300\): is not float: it is beyond the range of float"):
        make_literal(1e300, pa.float32())
    with pytest.raises(SchemaError, match=r"is not date32\[day\]: it has a time of day"):
        make_literal(datetime.datetime(2024, 1, 1, 12), pa.date32())


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (call("multiply", PRICE, call("subtract", 1, SIZE)), "price * (1 - size)"),
        (call("subtract", call("subtract", PRICE, 1), 2), "price - 1 - 2"),
        (call("subtract", PRICE, call("subtract", 1, 2)), "price - (1 - 2)"),
        (call("and", call("less", SIZE, 5), call("is_null", NAME)), "(size < 5) & is_null(name)"),
        (call("not", call("or", call("equal", NAME, "x"), call("is_null", NAME))), "~((name == 'x') | is_null(name))"),
        (call("is_in", SIZE, 1, 2), "is_in(size, [1, 2])"),
        (ColumnRef("two words"), "col('two words')"),
        (Case(((call("less", SIZE, 5), NAME),), make_literal("-")), "when(size < 5).then(name).otherwise('-')"),
    ],
)
def test_text_has_just_the_parentheses_it_needs(expression, text):
    assert expression_text(expression) == text


def test_a_renamed_column_keeps_its_nullability():
    schema = pa.schema([pa.field("x", pa.int8(), nullable=False)])
    named = [NamedExpression("y", ColumnRef("x")), NamedExpression("z", call("add", ColumnRef("x"), 1))]
    expected = pa.schema([pa.field("y", pa.int8(), nullable=False), pa.field("z", pa.int64())])
    assert infer_schema(named, schema) == expected


def test_a_type_is_that_of_each_schema_and_of_each_constant():
    cents, names = pa.decimal128(7, 2), ("x", "y")
    for types in ((cents, cents), (pa.decimal128(9, 3), cents), (pa.int64(), pa.float64()), (pa.int8(), pa.int64())):
        schema = pa.schema(list(zip(names, types, strict=True)))
        batch = pa.RecordBatch.from_arrays([pa.nulls(1, one) for one in types], names=names)
        for value in (Decimal("1.5"), Decimal("1.555"), 1, 1.0, 10**12):
            for made in (col("x") * lit(value), when(col("y") > 1).then(col("x")).otherwise(lit(value)), col("x") + 1):
                found = infer_type(made.expression, schema)
                assert found == infer_type(made.expression, schema) == evaluate(made.expression, batch).type
    parts = col("x").str.split(",")
    for value, kind in ((parts.list.get(0), pa.string()), (parts, pa.list_(pa.string()))):
        assert infer_type(value.expression, pa.schema([("x", pa.string())])) == kind


def test_constants_that_are_equal_in_python_are_different_ones():
    made = [make_literal(value) for value in (1, True, 1.0, "1", 1)]
    assert [literal_scalar(one).type for one in made] == [pa.int64(), pa.bool_(), pa.float64(), pa.string(), pa.int64()]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (col("a") < lit(10) + lit(5), "a < 15"),
        (col("a") + 1 < (lit(10) + 5) * 2, "a + 1 < 30"),
        (col("d") < lit(datetime.date(2020, 1, 31)) + interval(months=1), "d < 2020-02-29"),
        (col("d") < lit("2020-02-01").cast(pa.date32()), "d < 2020-02-01"),
        (col("t") == lit("a").str.upper(), "t == 'A'"),
        (col("a") < lit(1) // 0, "a < 1 // 0"),
        (col("a") < lit(None, pa.int64()) + 1, "a < None + 1"),
        (col("a") < lit(2**62) * 4, f"a < {2**62} * 4"),
        ((col("a") < 1) & (lit(1) < 2), "(a < 1) & True"),
        (lit(1) > 2, "False"),
        (col("a"), "a"),
    ],
)
def test_what_is_computed_of_constants_is_a_constant(expression, text):
    assert expression_text(with_constants(expression.expression)) == text


def test_a_constant_keeps_the_type_that_it_was_computed_as():
    for value in (lit(5).cast(pa.int8()), lit(1) / 2, lit("1.50").cast(pa.decimal128(5, 2)), lit(1.5).round(0)):
        found = with_constants(value.expression)
        assert isinstance(found, Literal)
        assert infer_type(found, pa.schema([])) == infer_type(value.expression, pa.schema([]))
        empty = pa.record_batch({"": [0]})
        assert evaluate(found, empty) == evaluate(value.expression, empty)


def test_what_has_another_value_each_time_is_no_constant():
    drawn = Call("rand", (), {"seed": 1})
    assert with_constants(drawn) == drawn
    assert isinstance(with_constants((lit(1) + 1).expression), Literal)


@pytest.mark.parametrize(
    "scalar",
    [
        pa.scalar(2**63, pa.uint64()),
        pa.scalar("é"),
        pa.scalar(None, pa.int8()),
        pa.scalar([1, None]),
        pa.scalar({"a": b"x"}),
        pa.scalar("x", pa.dictionary(pa.int8(), pa.string())),
        pa.scalar(["x"], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    ],
)
def test_a_constant_travels_as_a_stream_that_any_reader_takes(scalar):
    literal = make_literal(scalar)
    with pa.ipc.open_stream(literal.ipc) as reader:
        assert reader.read_next_batch().column(0)[0] == scalar
    assert literal_scalar(literal) == scalar and literal_scalar(literal).type == scalar.type


def test_each_of_many_constants_costs_little():
    begin = time.process_time()
    expression = call("is_in", SIZE, *range(40_000))
    assert infer_type(expression, SCHEMA) == pa.bool_()
    assert evaluate(expression, pa.record_batch({"size": [39_999, -1]})).to_pylist() == [True, False]
    assert time.process_time() - begin < 10


DEEP = functools.reduce(lambda left, right: left - right, range(2000), col("size"))


def test_what_is_nested_ever_so_deep_is_refused_and_has_a_text():
    with pytest.raises(SchemaError, match="an expression is nested 2001 deep, at most 200 are possible"):
        infer_type(DEEP.expression, SCHEMA)
    assert repr(DEEP).count("nested 2001 deep") == 1


def test_a_number_that_arrow_has_no_room_for_is_refused_as_such():
    with pytest.raises(SchemaError, match=r"cannot str slice: name is string \(.*too large"):
        infer_type(col("name").str.slice(0, 2**70).expression, SCHEMA)


def test_a_name_in_another_form_of_unicode_is_told_as_such():
    message = r"no column 'e\\u0301'; '\\xe9' has the same letters in another form of Unicode"
    with pytest.raises(SchemaError, match=message):
        infer_type(ColumnRef("e\u0301"), pa.schema({"\u00e9": pa.int64()}))
