"""Values out of JSON texts are those that DuckDB finds."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from engine import SchemaError, col
from engine.expressions.infer import infer_type
from engine.expressions.json_texts import path_steps
from tests.expressions.function_oracle import by_duckdb, values

S = col("x").str
TEXTS = [
    '{"a": {"b": [1, "x", null, {"c": true}]}, "k": "v"}',
    '{"a": {"b": []}}',
    '{"a": "text \\u00e9 😀"}',
    '{"a": 1.5}',
    "[1, 2]",
    "{}",
    "null",
    None,
]


@pytest.mark.parametrize("path", ["$.a", "$.a.b", "$.a.b[0]", "$.a.b[1]", "$.a.b[2]", "$.a.b[3].c", "$[1]", "$.k", "$"])
def test_what_lies_at_a_path_is_what_duckdb_finds(path):
    found = values(S.json_get(path), x=pa.array(TEXTS, pa.string()))
    assert found == by_duckdb(f"x::JSON->>'{path}'", x=pa.array(TEXTS, pa.string()))


def test_paths_are_taken_apart():
    assert path_steps("$.a['b.c'][-1].d") == ["a", "b.c", -1, "d"]
    assert path_steps("a.b") == ["a", "b"]
    assert values(S.json_get("a[-1]"), x=['{"a": [1, 2]}', '{"a": {}}', '{"a"', "", '"\\ud800"']) == ["2"] + [None] * 4
    assert values(S.json_get("$"), x=['"\\ud800"']) == ["?"]
    for wrong in ("$.a[", "$..a", "$.a[b]", "$['a]"):
        with pytest.raises(SchemaError, match="is no path"):
            infer_type(S.json_get(wrong).expression, pa.schema({"x": pa.string()}))


SHAPE = pa.schema([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string()), ("d", pa.float64())])))])
SHAPED = [
    '{"a": 1, "b": [{"c": "x", "d": 1.5}, null, {"d": 2}], "other": {"deep": [1]}}',
    '{"b": []}',
    "{}",
    '\n{\n"a"\n:\n-7}\n',
    "null",
    None,
]
BAD = [
    "",
    "no",
    "[1]",
    "1",
    '{"a": "text"}',
    '{"a": 1.5}',
    '{"a": 3000000000}',
    '{"a": 1',
    '{"a":1} {"a":2}',
    '1]}\n{"v":[2',
]


def test_values_of_a_type_are_those_of_python():
    found = values(S.json_parse(SHAPE), x=pa.array(SHAPED, pa.string()))
    assert found == [
        {"a": 1, "b": [{"c": "x", "d": 1.5}, None, {"c": None, "d": 2.0}]},
        {"a": None, "b": []},
        {"a": None, "b": None},
        {"a": -7, "b": None},
        None,
        None,
    ]


@pytest.mark.parametrize("share", [1, 3, 400])
def test_texts_that_are_no_such_value_are_null_and_all_others_are_not(share):
    texts = [BAD[index // share % len(BAD)] if index % share == 0 else f'{{"a": {index}}}' for index in range(2_000)]
    found = values(S.json_parse(SHAPE), x=pa.array(texts, pa.large_string()))
    assert found == [None if index % share == 0 else {"a": index, "b": None} for index in range(2_000)]


@pytest.mark.parametrize(
    ("data_type", "text", "value"),
    [
        (int, " 12 ", 12),
        ("float64", "1e3", 1000.0),
        (pa.bool_(), "true", True),
        (pa.string(), '"\\u00e9\\n"', "é\n"),
        (pa.decimal128(5, 2), '"1.50"', Decimal("1.50")),
        (pa.date32(), '"2024-02-29"', datetime.date(2024, 2, 29)),
        (pa.timestamp("us", "UTC"), '"2024-02-29T12:00:00Z"', datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)),
        (pa.timestamp("us"), '"2024-02-29 12:00:00.5"', datetime.datetime(2024, 2, 29, 12, 0, 0, 500_000)),
        (
            pa.timestamp("us", "UTC"),
            '"2024-02-29T12:00:00+05:00"',
            datetime.datetime(2024, 2, 29, 7, tzinfo=datetime.UTC),
        ),
        (pa.list_(pa.date32()), '["2024-02-29", null]', [datetime.date(2024, 2, 29), None]),
        (pa.list_(pa.list_(pa.int8())), "[[1], []]", [[1], []]),
        (int, "1, 2", None),
        (int, "99999999999999999999", None),
    ],
)
def test_every_kind_of_value_is_read(data_type, text, value):
    assert values(S.json_parse(data_type), x=[text, None]) == [value, None]
    assert infer_type(S.json_parse(data_type).expression, pa.schema({"x": pa.string()})) is not None


AT = "2024-02-29T12:00:00"


@pytest.mark.parametrize(
    ("data_type", "right", "wrong"),
    [
        (pa.timestamp("us"), AT, [f"{AT}+05:00", f"{AT}Z", f"{AT}-0500", "2024-02-30", "no"]),
        (pa.timestamp("us", "UTC"), f"{AT}Z", [AT, "2024-02-29", "no"]),
        (pa.timestamp("s"), AT, [f"{AT}.5"]),
        (pa.date32(), "2024-02-29", [AT, f"{AT}Z", "2024-02-30"]),
    ],
)
def test_a_text_that_is_no_such_moment_is_null_wherever_it_is_and_no_other_one(data_type, right, wrong):
    shape = pa.list_(pa.struct([("at", data_type), ("n", pa.int64())]))
    is_right = [index % 3 > 0 for index in range(600)]
    written = [right if is_one else wrong[index % len(wrong)] for index, is_one in enumerate(is_right)]
    moment = pa.array([right]).cast(data_type)[0].as_py()
    found = values(S.json_parse(data_type), x=[f'"{each}"' for each in written])
    assert found == [moment if is_one else None for is_one in is_right]
    texts = [f'[{{"at": "{right}", "n": 1}}, null, {{"n": 2, "at": "{each}"}}, {{}}]' for each in written]
    texts[1:2] = [None, "null", "[]"]
    found = values(S.json_parse(shape), x=texts)
    one, other, none = ({"at": moment, "n": 1}, {"at": moment, "n": 2}, {"at": None, "n": None})
    expected = [[one, None, other, none] if is_one else None for is_one in is_right]
    expected[1:2] = [None, None, []]
    assert found == expected


@pytest.mark.parametrize(
    ("about", "found"),
    [
        ("valid", [True] * 7 + [False, None]),
        ("type", ["OBJECT", "ARRAY", "VARCHAR", "UBIGINT", "BIGINT", "DOUBLE", "NULL", None, None]),
        ("length", [0, 2, 0, 0, 0, 0, 0, None, None]),
        ("keys", [["a", "?"], [], [], [], [], [], [], None, None]),
    ],
)
def test_what_is_in_a_json_text_is_told(about, found):
    texts = ['{"a": 1, "\\ud800": 2}', "[[1, 2], 3]", '"s"', "18446744073709551615", "-1", "1e3", "null", "no", None]
    assert values(S._value.call("str_json_about", about=about, path="$"), x=texts) == found
    for odd in ("", "[" * 100_000, "1" * 21):
        assert values(S._value.call("str_json_about", about="type"), x=[odd]) == ["DOUBLE" if odd[:1] == "1" else None]
    with pytest.raises(SchemaError, match="choose one of valid, type, length, keys"):
        infer_type(S._value.call("str_json_about", about="size").expression, pa.schema({"x": pa.string()}))


def test_a_type_that_json_has_not_is_refused():
    for data_type in (pa.map_(pa.string(), pa.int64()), pa.binary(), pa.list_(pa.time32("s"))):
        with pytest.raises(SchemaError, match="JSON has no"):
            infer_type(S.json_parse(data_type).expression, pa.schema({"x": pa.string()}))


def test_texts_are_numbers():
    texts = ["1,234.5", " -7 ", "1e3", "", None, "many", "1.2.3"]
    assert values(S.to_number(), x=texts) == [1234.5, -7.0, 1000.0, None, None, None, None]
    assert values(S.to_number(pa.int64(), thousands=""), x=["12", "1,2", "1.5"]) == [12, None, None]
    assert values(S.to_number(pa.decimal128(8, 2), thousands=".", decimal=","), x=["1.234,50"]) == [Decimal("1234.50")]
    with pytest.raises(SchemaError, match="two signs that differ"):
        S.to_number(decimal=",")
