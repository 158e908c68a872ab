"""Blocks parsed natively are what Arrow's reader makes of them, or are left to it."""

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.csv.columns import ColumnParser, parses_natively

SCHEMA = pa.schema(
    [("text", pa.string()), ("whole", pa.int64()), ("real", pa.float64()), ("day", pa.date32()), ("small", pa.int8())]
)
EMPTY = pa.schema([("a", pa.string()), ("b", pa.string())])

PLAIN = st.text(alphabet="abc é\x00-", max_size=30).map(lambda text: text.replace("\x00", ""))
QUOTED = st.text(alphabet='ab,"\n\ré', max_size=40).map(lambda text: '"' + text.replace('"', '""') + '"')
WHOLE = st.integers(-(1 << 63), (1 << 63) - 1).map(str) | st.sampled_from(["", '"7"', "007", "-0", "9" * 19])
REAL = (
    st.floats(width=64).map(repr)
    | st.builds(
        lambda digits, places: f"{digits / 10**places:.{places}f}", st.integers(-(10**15), 10**15), st.integers(0, 9)
    )
    | st.sampled_from(["", '"1.5"', "1", "-0", "0.1", "123456789012345", "0.30000000000000004", "1e5", "000.5"])
)
DAY = st.dates().map(str) | st.just("")
SMALL = st.integers(-128, 127).map(str)
RECORDS = st.lists(st.tuples(PLAIN | QUOTED, WHOLE, REAL, DAY, SMALL).map(",".join), min_size=1, max_size=30)


def by_arrow(data, schema, empty_is_null=True):
    return pacsv.read_csv(
        pa.BufferReader(data),
        pacsv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=schema.names),
        pacsv.ParseOptions(newlines_in_values=True),
        pacsv.ConvertOptions(
            column_types=dict(zip(schema.names, schema.types, strict=True)),
            null_values=[""] if empty_is_null else [],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def natively(data, schema, rows_max=8192, columns=None, **options):
    parser = ColumnParser(schema, columns or schema.names, ord(","), ord('"'), options.get("empty_is_null", True))
    return parser.parse(memoryview(data), rows_max)


def same(batches, table):
    for batch in batches:
        batch.validate(full=True)
    found = pa.Table.from_batches(batches, table.schema)
    for name in table.schema.names:
        # As text, so that NaN is NaN and -0 is not 0.
        left, right = found.column(name).combine_chunks(), table.column(name).combine_chunks()
        assert repr(left.to_pylist()) == repr(right.to_pylist())
    return True


@given(RECORDS, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 40))
@example(['"",1,2,,3'], "\n", True, 1)
@example(["a" * 17 + ",1,2,,3", "é,2,,1970-01-01,-4"], "\r\n", False, 1)
def test_ordinary_blocks_are_read_as_arrow_reads_them(records, line_end, ends, rows_max):
    data = line_end.join(records).encode() + (line_end.encode() if ends else b"")
    batches = natively(data, SCHEMA, rows_max)
    try:
        table = by_arrow(data, SCHEMA)
    except pa.ArrowInvalid:
        assert batches is None
        return
    assert batches is not None
    assert same(batches, table)
    assert max(batch.num_rows for batch in batches) <= rows_max


@given(st.text(alphabet='ab,"\n\r 1', max_size=60).map(str.encode), st.booleans())
@example(b'a,b\n"x"y,c\n', True)
@example(b"a,b\n\nc,d\n", True)
@example(b"a,b\n\na,b,c\n", True)
@example(b'"a""b",c\n"d,\n', True)
@example(b"a,b\rc,d\n", True)
@example(b"a,b\n\r\nc,d", True)
@example(b"a,b\n,\n", False)
@example(b"x" * 63 + b'"' + b",y\n", True)
@example(b'"",', True)
def test_whatever_stands_there_is_read_as_arrow_reads_it_or_left_alone(data, empty_is_null):
    batches = natively(data, EMPTY, empty_is_null=empty_is_null) if data else None
    if batches is not None:
        # Nothing at the end of the data is quoted to Arrow if the field before it is.
        assert same(batches, by_arrow(data + b"\n" * data.endswith(b","), EMPTY, empty_is_null))


@pytest.mark.parametrize(
    "field", ["x", "1.5", "", "128", "-129", "+1", " 1", "1 ", "-", '"1', '""', "12345678901234567890"]
)
def test_what_is_no_small_integer_is_left_alone(field):
    schema = pa.schema([("a", pa.int8()), ("b", pa.int8())])
    assert natively(f"1,{field}\n".encode(), schema, empty_is_null=False) is None
    assert natively(b"-128,127\n", schema, empty_is_null=False)[0].to_pylist() == [{"a": -128, "b": 127}]


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("end", ["\n", ""])
def test_numbers_are_read_wherever_their_point_stands_and_where_the_block_ends(sign, end):
    schema = pa.schema([("whole", pa.int64()), ("real", pa.float64())])
    for digits in ("987654321987654", "000000000000000", "100000000000001"):
        for size in range(1, len(digits) + 1):
            whole = sign + digits[:size]
            for real in (whole, *(f"{whole[:place]}.{whole[place:]}" for place in range(1 + len(sign), len(whole)))):
                data = f"{whole},{real}\n-1,0.5\n{whole},{real}{end}".encode()
                (batch,) = natively(data, schema)
                assert same([batch], by_arrow(data, schema))


@pytest.mark.parametrize("wrong", "/:;. -+eE,\x00\x7f\x80\xb0\xff")
def test_what_is_no_digit_is_no_number_at_any_place(wrong):
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    for size in range(1, 12):
        for place in range(size):
            field = b"9" * place + wrong.encode("latin-1") + b"9" * (size - place - 1)
            if wrong != "-" or place:
                assert natively(b"1," + field + b"\n2,3\n12345678,3\n", schema) is None


@pytest.mark.parametrize("size", range(9))
def test_fields_are_found_however_many_there_are_in_64_bytes(size):
    data = b"".join(b"x" * (size + row % 3 // 2) + b"," + b"y" * (row % 2) + b"\n" for row in range(300))
    assert same(natively(data, EMPTY), by_arrow(data, EMPTY))


def test_text_that_is_not_utf8_is_left_alone():
    assert natively(b"a,\xff\n", EMPTY) is None
    assert natively("a,\u00e9\n".encode(), EMPTY)[0].to_pylist() == [{"a": "a", "b": "\u00e9"}]


def test_only_wanted_columns_are_read_in_their_order_and_others_may_hold_anything():
    data = b'1,"a,""b",x\n2,,y\r\n'
    schema = pa.schema([("n", pa.int32()), ("t", pa.string()), ("other", pa.decimal128(5, 2))])
    (batch,) = natively(data, schema, columns=["t", "n"])
    assert batch.to_pylist() == [{"t": 'a,"b', "n": 1}, {"t": None, "n": 2}]


def test_batches_are_of_even_size():
    data = b"1,2\n" * 100
    schema = pa.schema([("a", pa.int8()), ("b", pa.int8())])
    assert [batch.num_rows for batch in natively(data, schema, rows_max=40)] == [34, 34, 32]


def test_types_without_a_native_form_are_known():
    assert parses_natively(pa.string())
    assert not parses_natively(pa.timestamp("us"))
    with pytest.raises(KeyError):
        ColumnParser(pa.schema([("a", pa.bool_()), ("b", pa.bool_())]), ["a"], 44, 34, True)


def test_without_a_quote_character_quotes_are_text():
    parser = ColumnParser(EMPTY, ["a", "b"], ord(";"), -1, True)
    assert parser.parse(memoryview(b'"x;y"z\n\xc3\xa9"";\n'), 8192)[0].to_pylist() == [
        {"a": '"x', "b": 'y"z'},
        {"a": 'é""', "b": None},
    ]
