"""Blocks of JSON lines parsed natively are what Arrow's reader makes of them, or are left to it."""

import datetime
import json
import re

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.connectors.json_blocks import JsonParser, is_utf8
from engine.connectors.json_columns import JsonColumns, parses_natively

SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("whole", pa.int64()),
        ("small", pa.int8()),
        ("unsigned", pa.uint64()),
        ("real", pa.float64()),
        ("single", pa.float32()),
        ("truth", pa.bool_()),
        ("moment", pa.timestamp("ms")),
        ("day", pa.date32()),
        ("raw", pa.binary()),
        ("list", pa.list_(pa.int32())),
        ("rows", pa.list_(pa.struct([("a", pa.string()), ("b", pa.list_(pa.bool_()))]))),
        ("struct", pa.struct([("a", pa.float64()), ("b", pa.struct([("a", pa.int16())]))])),
        ("map", pa.map_(pa.string(), pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text('\\"/\n\x00é', max_size=6)
FINITE = {"allow_nan": False, "allow_infinity": False}
REALS = st.floats(**FINITE) | st.integers(-9, 9) | st.decimals(-99, 99, places=3).map(float)
SMALL = st.integers(-128, 127)
VALUES = {
    "text": TEXTS,
    "whole": st.integers(-(1 << 63), (1 << 63) - 1),
    "small": SMALL,
    "unsigned": st.integers(0, (1 << 63) - 1),
    "real": REALS,
    "single": st.floats(width=32, **FINITE),
    "truth": st.booleans(),
    "moment": st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2100, 1, 1)).map(
        lambda moment: moment.isoformat(sep=" ", timespec="milliseconds")
    ),
    "day": st.dates().map(str),
    "raw": TEXTS,
    "list": st.lists(st.none() | SMALL, max_size=3),
    "rows": st.lists(
        st.none()
        | st.fixed_dictionaries({}, optional={"a": st.none() | TEXTS, "b": st.none() | st.lists(st.booleans())}),
        max_size=3,
    ),
    "struct": st.fixed_dictionaries(
        {}, optional={"a": REALS, "b": st.none() | st.fixed_dictionaries({}, optional={"a": SMALL})}
    ),
    # Keys with escapes are left to Python's decoder.
    "map": st.dictionaries(st.text("ab ", max_size=3), st.none() | TEXTS, max_size=4),
    "counts": st.dictionaries(st.text("ab", max_size=3), st.none() | SMALL, max_size=4),
}
OTHERS = {"other": st.recursive(st.none() | TEXTS | REALS | st.booleans(), lambda each: st.lists(each, max_size=2))}
OBJECTS = st.fixed_dictionaries(
    {}, optional={name: st.none() | values for name, values in (VALUES | OTHERS).items()}
).flatmap(lambda found: st.permutations(list(found.items())).map(dict))
ROWS = st.lists(OBJECTS, min_size=1, max_size=8)
STYLES = st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\r: ")])


def by_arrow(block, schema):
    """Return what Arrow's reader makes of a block, of its lines changed where it refuses them; None: it still does."""
    parser = JsonParser(schema)
    parser._native = None
    try:
        return parser.parse(block)
    except pa.ArrowInvalid:
        return None


def natively(block, schema=SCHEMA):
    """Return what is made of a block, as its columns are to be; None: it is left to Arrow's reader."""
    parser = JsonParser(schema)
    is_left = []
    parse = parser._native.parse

    class Watched:
        def parse(self, block):
            table = parse(block)
            is_left.append(table is None)
            return table

    parser._native = Watched()
    try:
        is_utf8(block)
        table = parser._parse(block)
    except pa.ArrowInvalid:
        return None
    if any(is_left):
        return None
    table.validate(full=True)
    return table


def assert_same(found, wanted):
    assert found.schema == wanted.schema
    # As text, so that -0 is not 0.
    assert repr(found.to_pylist()) == repr(wanted.to_pylist())


def as_lines(rows, style=(",", ":"), *, ascii_only=False, end="\n"):
    texts = [json.dumps(row, separators=style, ensure_ascii=ascii_only) for row in rows]
    return end.join(texts).encode() + end.encode()


@given(ROWS, STYLES, st.booleans(), st.sampled_from(["\n", "\r\n", "\n \n"]))
@example([{"text": "a" * 31 + '"' + "b" * 33, "whole": -(1 << 63), "real": -0.0}] * 3, (",", ":"), False, "\n")
@example([{"text": "\U0001f600\ud7ff￿\x7f"}, {}], (",", ":"), True, "\n")
def test_ordinary_lines_are_read_as_arrow_reads_them(rows, style, ascii_only, end):
    block = as_lines(rows, style, ascii_only=ascii_only, end=end)
    found = natively(block)
    assert found is not None
    assert_same(found, by_arrow(block, SCHEMA))


SOME = [*SCHEMA.names[:5], "struct", "map"]
#: numbers that are zero, and that Arrow's reader finds too big
ZERO_TIMES_MUCH = re.compile(rb"[:\[ ]-?0(\.0*)?[eE]\+?\d{3}")
BROKEN = st.sampled_from([*b'{}[]",:\\ntfu0-1.eE \x00\x1f\n\r\xc3\xa9', *b"aull"])


@given(ROWS, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2), BROKEN), max_size=3))
@example([{"text": "a"}], [(8, 0, ord(","))])
@example([{"whole": 1}], [(9, 0, ord("0"))])
@example([{"real": 0.375}], [(9, 1, ord("e"))])
def test_lines_that_are_damaged_are_read_as_arrow_reads_them_or_left_to_it(rows, changes):
    schema = pa.schema([SCHEMA.field(name) for name in SOME])
    block = bytearray(as_lines(rows))
    for place, length, byte in changes:
        begin = place % len(block)
        block[begin : begin + length] = bytes([byte])
    found = natively(bytes(block), schema)
    if found is not None:
        wanted = by_arrow(bytes(block), schema)
        if wanted is None:
            assert ZERO_TIMES_MUCH.search(block)
        else:
            assert_same(found, wanted)


SIGNS = [*',:{}[]"-0\\ \n', '"a"', '"b"', '"\\u0061"', '"\\ud83d"']
WORDS = ["1", "1.", "e5", "-0", "01", "1e400", "NaN", "nul", "null", "true"]
TOKENS = st.sampled_from([*SIGNS, *WORDS, '{"a":1}\n', '{"b":"x","a":1}\n', '{"a":{"a":[1]}}'])


@given(st.lists(TOKENS, max_size=14).map("".join))
@example('{"a":1,"a":2}')
@example('{"b":1,"b":2}')
@example('{"a":1,}')
@example('{"a":1}{"a":2}')
@example('{,"a":1}')
@example("[]")
@example("null")
@example('{"b":{"a":NaN}}')
def test_any_text_is_read_as_arrow_reads_it_or_left_to_it(text):
    for schema in (pa.schema([("a", pa.int64())]), pa.schema([("b", pa.string())]), pa.schema([])):
        found = natively(text.encode(), schema)
        if found is not None:
            assert_same(found, by_arrow(text.encode(), schema))


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":1,"a":2}',
        b'{"a":1.5}',
        b'{"a":9223372036854775808}',
        b'{"a":"1"}',
        b'{"a":01}',
        b'{"a":+1}',
        b'{"a":1} {"a":2}',
        b'{"a":1}}',
        b'{"a":1',
        b'{"a"\n:1}',
        b'{"a":1,}',
        b'{"\\u0061":1}',
        b'{"x":"\\ud800"}',
        b'{"x":"\\x"}',
        b'{"x":"\t"}',
        b'{"x":tru}',
        b'{"x":[1,]}',
        b'{"x":{"y"}}',
        b'{"x":' + b"[" * 70 + b"]" * 70 + b"}",
        b"[1]",
        b"\x00",
    ],
)
def test_what_is_not_ordinary_is_left_to_arrow(line):
    schema = pa.schema([("a", pa.int64())])
    assert JsonColumns(schema, schema).parse(b'{"a":1}\n' + line + b"\n") is None
    # And what comes behind is read again.
    columns = JsonColumns(schema, schema)
    assert columns.parse(line) is None
    assert columns.parse(b'{"a":1}\n').to_pylist() == [{"a": 1}]


def test_a_text_has_what_is_no_text_as_it_is_written():
    block = b'{"t": {"b" : [1, "x"]}}\n{"t":1.50}\n{"t":null}\n{"t":[ ]}\n{"t":true}\n{"t":"x"}\n{}\n'
    schema = pa.schema([("t", pa.string())])
    found = natively(block, schema)
    assert found["t"].to_pylist() == ['{"b" : [1, "x"]}', "1.50", None, "[ ]", "true", "x", None]
    assert_same(found, by_arrow(block, schema))


def test_a_map_that_has_a_key_twice_is_left_to_who_says_so():
    schema = pa.schema([("m", pa.map_(pa.string(), pa.int64()))])
    assert natively(b'{"m":{"a":1,"b":2}}', schema)["m"].to_pylist() == [[("a", 1), ("b", 2)]]
    assert natively(b'{"m":{"a":1,"b":2,"a":3}}', schema) is None


def test_members_come_in_any_order_and_new_ones_in_later_blocks():
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    columns = JsonColumns(schema, schema)
    assert columns.parse(b'{"x":1,"a":1,"y":{"a":5},"b":"u"}\n').to_pylist() == [{"a": 1, "b": "u"}]
    found = columns.parse(b'{"b":"v","z":[],"a":2}\n{"y":0,"ab":7}\n{"":3,"a":3,"x":1,"b":"w"}\n{"a":4}')
    assert found["a"].to_pylist() == [2, None, 3, 4]
    assert found["b"].to_pylist() == ["v", None, "w", None]


def test_objects_of_very_many_names_are_left_to_arrow():
    schema = pa.schema([("a", pa.int64())])
    columns = JsonColumns(schema, schema)
    many = b"".join(b'{"n%d":0,"a":%d}\n' % (index, index) for index in range(1000))
    assert columns.parse(many)["a"].to_pylist() == list(range(1000))
    assert columns.parse(many.replace(b"n", b"m")) is None


def test_rows_without_columns_are_counted():
    assert natively(b'{"a":1}\n\n{}\n', pa.schema([])).num_rows == 2
    assert natively(b" \n", pa.schema([("a", pa.int64())])).num_rows == 0


def test_types_that_are_not_read_here_are_known():
    for data_type in (pa.decimal128(5, 2), pa.struct([]), pa.list_(pa.decimal128(5, 2)), pa.float16()):
        assert not parses_natively(data_type)
    schema = pa.schema([("d", pa.decimal128(5, 2))])
    assert JsonParser(schema).parse(b'{"d":"1.25"}\n').num_rows == 1
