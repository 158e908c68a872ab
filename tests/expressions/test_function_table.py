"""What the table says of a function is true: how many arguments, which types, whether it can fail, what null gives."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from engine.errors import DataError, SchemaError
from engine.expressions.argument_kinds import type_of_kind
from engine.expressions.binding import NoMatchError
from engine.expressions.evaluate import compile_expression
from engine.expressions.function_registry import find_function
from engine.expressions.literals import make_literal
from engine.graph.expression import Call, ColumnRef
from engine.graph.function_row import FunctionRow
from engine.graph.function_table import FUNCTION_TABLE, SAFE_FUNCTIONS, is_deterministic
from tests.expressions.function_oracle import DECIMALS, FLOATS, INTEGERS, TEXTS

#: columns of every type, with values at its edges; a text that is none among them
BAD_TEXT = pa.array([b"ok", b"\xff\xfe", b"", None]).view(pa.string())
COLUMNS = {
    "number": [
        pa.array([*INTEGERS, -(2**63)], pa.int64()),
        pa.array([-128, 127, None], pa.int8()),
        pa.array([2**64 - 1, 0, None], pa.uint64()),
        pa.array(FLOATS, pa.float64()),
        pa.array([0.5, -1.5, None], pa.float32()),
        pa.array([0.5, -1.5, None], pa.float16()),
        pa.array(DECIMALS, pa.decimal128(6, 2)),
        pa.array([Decimal(10) ** 37, None], pa.decimal256(50, 2)),
        pa.nulls(3),
    ],
    "integer": [pa.array([*INTEGERS, -(2**63)], pa.int64()), pa.array([-128, None], pa.int8()), pa.nulls(2)],
    "bool": [pa.array([True, False, None]), pa.nulls(2)],
    "text": [pa.array(TEXTS), pa.array(TEXTS, pa.large_string()), BAD_TEXT, pa.nulls(2)],
    "binary": [pa.array([b"", b"\xff", b"ab", None]), pa.array(TEXTS), pa.array([b"ab", None], pa.binary(2))],
    "moment": [
        pa.array([datetime.date(2024, 2, 29), datetime.date(1, 1, 1), None], pa.date32()),
        pa.array([-(2**62), 0, 2**62, None], pa.timestamp("us")),
        pa.array([-(2**62), 0, 2**62, None], pa.timestamp("ns", "Europe/Berlin")),
    ],
    "list": [
        pa.array([[1, None], [], None]),
        pa.array([["a"], None], pa.list_(pa.string(), 1)),
        pa.array([[True], [None, False], None]),
        pa.array([[0.5], []], pa.large_list(pa.float64())),
        pa.array([[[1], None], [], None]),
        pa.array([[{"k": "a", "v": 1}], [], None]),
    ],
    "map": [pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64()))],
    "struct": [pa.array([{"a": 1}, {"a": None}, None])],
}
COLUMNS["float"] = COLUMNS["number"]
COLUMNS["same"] = COLUMNS["any"] = [column for kind in ("number", "bool", "text", "moment") for column in COLUMNS[kind]]
CONSTANTS = {
    "str_extract_groups": "(a)",
    "try_cast": None,
    "str_json_parse": 1,
    "map_get": "a",
    "str_": "a",
    "dt_": "day",
    "is_in": 1,
    "replace": [1],
}
#: options without which a function means nothing
OPTIONS = {"dt_truncate": {"unit": "day"}, "str_slice": {"start": 1}, "str_split_part": {"n": 1}}
OPTIONS |= {"struct": {"0": "a", "1": "b"}, "field": {"name": "a"}, "list_slice": {"start": 1}}
OPTIONS |= {"struct_with_fields": {"0": "a"}, "struct_rename_fields": {"a": "b"}, "struct_drop": {}}
OPTIONS |= {"str_normalize": {"form": "NFC"}}
OPTIONS |= {"str_encode": {"encoding": "hex"}, "str_decode": {"encoding": "base64"}}
OPTIONS |= {"str_to_date": {"format": "%Y-%m-%d"}, "str_to_timestamp": {"format": "%H:%M:%S"}}
OPTIONS |= {"str_json_get": {"path": "$.a"}}
OPTIONS |= {"dt_epoch": {"unit": "s"}, "dt_strftime": {"format": "%Y"}, "dt_diff": {"unit": "days"}}
OPTIONS |= {"dt_with_timezone": {"timezone": None}, "dt_to_timezone": {"timezone": "Asia/Tokyo"}}
PLAIN = {
    "bool": pa.bool_(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "date32[day]": pa.date32(),
    "time64[us]": pa.time64("us"),
}
#: what has arguments; rand has a test of its own, as have pairs
ROWS = [row for row in FUNCTION_TABLE.values() if row.arguments and not row.is_internal]
IDS = [row.name for row in ROWS]


def constant_for(row):
    return next((value for prefix, value in CONSTANTS.items() if row.name.startswith(prefix)), 1)


def calls(row):
    """Calls of a function over columns ``c0``, ``c1`` of its first argument's kinds, with the batches to compute."""
    kind = row.kind(0)
    for column in COLUMNS[kind]:
        arguments, columns = [], []
        for index in range(len(row.arguments)):
            if row.kind(index) == "constant":
                arguments.append(make_literal(constant_for(row)))
                continue
            arguments.append(ColumnRef(f"c{len(columns)}"))
            other = "number" if (kind, row.kind(index)) == ("list", "any") else row.kind(index)
            columns.append(column if other in (kind, "same", "any") else COLUMNS[other][0])
        length = min(map(len, columns))
        names = [f"c{index}" for index in range(len(columns))]
        batch = pa.RecordBatch.from_arrays([each.slice(0, length) for each in columns], names)
        yield Call(row.name, tuple(arguments), OPTIONS.get(row.name, {})), batch


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_what_a_row_says_of_failing_nulls_and_types_is_true(row):
    bound = 0
    for call, batch in calls(row):
        try:
            compiled = compile_expression(call, batch.schema)
        except SchemaError:
            continue  # not of these types; that it is of some is asked below
        bound += 1
        if row.fails != "values":
            assert not compiled.can_raise or any(pa.types.is_uint64(field.type) for field in batch.schema)
        try:
            found = compiled(batch)
        except DataError as error:
            assert row.fails == "values" or (row.fails == "bad text" and "UTF" in str(error)), call
            continue
        assert len(found) == batch.num_rows
        check_result(row, batch, found)
    assert bound


def check_result(row, batch, found):
    if row.result in PLAIN and not pa.types.is_null(batch.schema.types[0]):
        assert found.type in (PLAIN[row.result], pa.large_string() if row.result == "string" else None)
    elif row.result in ("first", "same"):
        wanted = type_of_kind(row.kind(0), batch.schema.types[0]) or batch.schema.types[0]
        if not (pa.types.is_null(batch.schema.types[0]) or pa.types.is_float16(wanted)):  # comparisons have no float16
            assert found.type in (wanted, batch.schema.types[0])
    if row.nulls == "any":
        columns = [column.is_null().to_pylist() for column in batch.columns]
        for is_null, value in zip(map(any, zip(*columns, strict=True)), found.is_null().to_pylist(), strict=True):
            assert value or not is_null


def test_names_of_the_table_are_its_keys_and_safe_functions_are_those_that_never_fail():
    assert all(name == row.name for name, row in FUNCTION_TABLE.items())
    assert "less" in SAFE_FUNCTIONS
    assert not SAFE_FUNCTIONS & {"add", "divide", "str_upper", "coalesce", "abs"}
    assert is_deterministic(Call("abs", (ColumnRef("a"),)))


def test_optional_and_repeated_arguments_are_counted():
    assert FunctionRow("f", ("number", "number?"), "arrow:abs", "first").arity == (1, 2)
    assert FunctionRow("f", ("text", "text*"), "arrow:abs", "first").arity == (1, None)
    assert FunctionRow("f", ("text", "text*"), "arrow:abs", "first").kind(7) == "text"
    with pytest.raises(SchemaError, match="str_upper takes 1 arguments, not 2"):
        find_function("str_upper", 2)
    with pytest.raises(SchemaError, match="coalesce takes 1 or more arguments, not 0"):
        find_function("coalesce", 0)
    with pytest.raises(SchemaError, match="there is no function 'unheard_of'"):
        find_function("unheard_of", 1)


def test_a_kind_refuses_what_it_is_not_and_says_what_to_do():
    wrong = {
        "number": (pa.string(), "cast to pa.int64"),
        "integer": (pa.float64(), "cast to pa.int64"),
        "bool": (pa.int64(), "compare first"),
        "text": (pa.int64(), "cast to pa.string"),
        "binary": (pa.int64(), "cast to pa.string"),
        "list": (pa.string(), "split"),
        "map": (pa.string(), "map_from"),
        "struct": (pa.string(), "struct"),
    }
    for kind, (data_type, remedy) in wrong.items():
        with pytest.raises(NoMatchError, match=remedy):
            type_of_kind(kind, data_type)
    assert type_of_kind("any", pa.int8()) is None
