"""Objects over several lines are bad rows wherever blocks end; bad lines cost little; texts are of what is there."""

import datetime
import time
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Environment, JobExecutionError, SchemaError, col, count, count_if, sum_
from engine.connectors import json_lines
from engine.connectors.json_blocks import JsonParser
from engine.connectors.json_lines import LineReader, goes_over, objects_over_lines
from engine.connectors.json_reader import JsonReader
from engine.connectors.json_source import json_source
from engine.graph.source_spec import SourceSplit

SCHEMA = pa.schema([("a", pa.int64())])
OVER = b'{"a":%d,"items":[\n{"a":-1}\n]}\n'


@pytest.mark.parametrize("count_of_objects", [3, 60_000])
@pytest.mark.parametrize("parallelism", [1, 4])
def test_an_object_over_lines_is_one_error_or_one_bad_row(tmp_path, count_of_objects, parallelism):
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a":7}\n' + b"".join(OVER % number for number in range(count_of_objects)))
    with Environment(config={"parallelism.default": parallelism}) as env:
        with pytest.raises(
            Exception, match=rf"file {path}, line 2: the object is not whole on its line; JSON lines has"
        ):
            env.read_json(path, SCHEMA).count()
        data = env.read_json(path, SCHEMA, on_bad_row="skip")
        with pytest.warns(match=f"{count_of_objects:,} malformed row"):
            (row,) = data.agg(n=count(), s=sum_("a"), invented=count_if(col("a") == -1)).collect()
    assert tuple(row) == (1, 7, 0)


@pytest.mark.parametrize("behind", [b"", b"\n", b'{"a":\n3}\n'])
@pytest.mark.parametrize("between", [b"", b" ", b"\t"])
def test_two_objects_on_a_line_are_one_error_or_one_bad_row(tmp_path, between, behind):
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a":7}\n{"a":1}' + between + b'{"a":2}\n' + behind)
    said = "line 2: more than one object on a line; JSON lines has one object a line"
    with Environment() as env:
        with pytest.raises(Exception, match=rf"file {path}, {said}"):
            env.read_json(path, SCHEMA).count()
        with pytest.raises(SchemaError, match=said):
            env.read_json(path)
        with pytest.warns(match="malformed row"):
            assert env.read_json(path, SCHEMA, on_bad_row="skip").to_arrow()["a"].to_pylist() == [7]


def test_a_schema_of_objects_over_lines_is_refused_with_the_line(tmp_path):
    (tmp_path / "a.json").write_bytes(b'{"a":7}\n' + OVER % 1)
    with pytest.raises(SchemaError, match="line 2: the object is not whole on its line"):
        json_source(tmp_path / "a.json")


PIECES = [b'{"a":1}', b"", b'{"a":2,"x":[', b'{"a":-1}', b"]}", b"[", b"],", b'{"a":"]}', b'"}', b"{", b"}", b'{"a":']


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.data())
def test_what_a_line_is_does_not_depend_on_where_blocks_and_splits_end(tmp_path_factory, lines, data):
    path = tmp_path_factory.mktemp("json") / "a.json"
    path.write_bytes(b"\n".join([b"{}", *lines, b""]))
    spec, _, _ = json_source(path, SCHEMA, on_bad_row="skip")

    def read(splits, block_bytes):
        reader = JsonReader(spec, splits, block_bytes)
        rows = [row["a"] for batch in reader for row in batch.to_pylist()]
        reader.close()
        return rows, reader.bad_rows

    size = path.stat().st_size
    cut = data.draw(st.integers(0, size))
    splits = [SourceSplit(str(path), 0, cut, cut), SourceSplit(str(path), cut, size, size - cut)]
    assert read(splits, data.draw(st.sampled_from([1, 5, 20, 1 << 20]))) == read(spec.splits, 1 << 20)


@pytest.mark.parametrize("block_bytes", [1, 5, 20, 1 << 20])
def test_an_object_over_lines_ends_blocks_later(tmp_path, block_bytes):
    path = tmp_path / "a.json"
    path.write_bytes(b'{}\n{"a":2,"x":[\n{"a":1}\n\n]}\n{"a":3}\n')
    spec, _, _ = json_source(path, SCHEMA, on_bad_row="skip")
    reader = JsonReader(spec, spec.splits, block_bytes)
    assert [row["a"] for batch in reader for row in batch.to_pylist()] == [None, 3]
    assert reader.bad_rows == 1
    reader.close()


def test_a_line_that_broke_off_makes_no_object_of_good_lines(monkeypatch):
    lines = [b'{"a":1,"b":[', b'{"a":2}', b'"b":[]}', b'{"a":3,"b":[', b'{"a":4}', b"]}", b"{}"]
    assert objects_over_lines(lines) == [(3, 5)]
    monkeypatch.setattr(json_lines, "SPAN_BYTES", 20)
    assert objects_over_lines(lines) == []


def test_objects_in_objects_are_one():
    assert objects_over_lines([b"{", b'"a": [', b"1", b"],", b'"b": "]}"', b"}", b"{}", b'{"a":', b"{}}"]) == [
        (0, 5),
        (7, 8),
    ]


@pytest.mark.parametrize(("line", "is_over"), [(b'{"a":"{["}', False), (b"{", True), (b"]}", True), (b'"\\"{', False)])
def test_brackets_in_texts_do_not_count(line, is_over):
    assert goes_over(line) == is_over


WIDE = pa.schema([("w", pa.int8()), ("u", pa.uint64()), ("f", pa.float64()), ("b", pa.bool_()), ("t", pa.date32())])
VALUES = [
    "null",
    "1",
    "-1",
    "300",
    "1.5",
    "1e2",
    "01",
    "NaN",
    "Infinity",
    "true",
    '"x"',
    '"2020-01-02"',
    "[1]",
    '{"a":1}',
    '"\\ud8"',
]


@given(
    st.sampled_from(WIDE.names),
    st.sampled_from(VALUES),
    st.sampled_from(["", " ", "\t"]),
    st.sampled_from(["", ",", "}"]),
)
def test_a_line_is_called_bad_only_if_arrow_refuses_it(name, value, space, end):
    line = f'{space}{{{space}"z":{{}}{space},"{name}"{space}:{space}{value}{end}}}'.encode()
    if LineReader(WIDE).read(line) is None:
        with pytest.raises(pa.ArrowInvalid):
            JsonParser(WIDE).parse(line)


def test_texts_are_those_of_what_is_there():
    schema = pa.schema([("s", pa.string()), ("n", pa.int64())])
    lines = [
        '{"s":"a","n":1}',
        '{"n":2,"s": 1.50 }',
        '{"s":{"x": [1, "é\\n"]}}',
        '{"s":null}',
        '{"s":true,"x":{"s":5}}',
        "",
        "{}",
    ]
    expected = ["a", "1.50", '{"x": [1, "é\\n"]}', None, "true", None]
    block = "\n".join(lines).encode()
    assert JsonParser(schema).parse(block)["s"].to_pylist() == expected
    tables, bad = JsonParser(schema).parse_good(block + b'\n{"s":1,"n":"x"}')
    assert (pa.concat_tables(tables)["s"].to_pylist(), bad) == (expected, 1)
    assert JsonParser(schema).first_bad(block + b'\n{"s":1,"n":"x"}') == (7, "Column(/n) changed from number to string")


def test_many_bad_lines_cost_little():
    schema = pa.schema([("a", pa.int64()), ("t", pa.timestamp("us"))])
    bad = [b"nonsense", b'{"a":"x"}', b'{"a":1.5}', b'{"t":"N/A"}', b'{"a":1', b'{"a":99999999999999999999}']
    lines = [bad[number % 6] if number % 2 else b'{"a":%d}' % number for number in range(20_000)]
    begin = time.process_time()
    tables, found = JsonParser(schema).parse_good(b"\n".join(lines))
    assert (sum(table.num_rows for table in tables), found) == (10_000, 10_000)
    assert time.process_time() - begin < 3.0


def test_deep_values_are_left_to_arrow():
    deep = b'{"z":' + b"[" * 3000 + b"]" * 3000 + b',"a":1}'
    tables, bad = JsonParser(SCHEMA).parse_good(deep + b"\nbad")
    assert (pa.concat_tables(tables)["a"].to_pylist(), bad) == ([1], 1)


@pytest.mark.parametrize("depth", [30, 200, 700])
def test_values_of_any_depth_are_read_or_said_to_be_too_deep(tmp_path, depth):
    path = tmp_path / "a.json"
    value = "[" * depth + "]" * depth
    path.write_text(f'{{"a":{value}}}\n')
    with Environment() as env:
        if depth < 32:
            assert env.read_json(path).count() == 1
        else:
            with pytest.raises(SchemaError, match="'a' is nested more than 32 deep; pass schema= with string"):
                env.read_json(path)
        assert env.read_json(path, pa.schema([("a", pa.string())])).to_arrow()["a"].to_pylist() == [value]


MAPS = [
    (
        pa.int64(),
        ['{"a":1,"b":-2}', " { } ", "null", '{"x y\\"\\u00e4": null}'],
        [[("a", 1), ("b", -2)], [], None, [('x y"ä', None)]],
    ),
    (
        pa.string(),
        ['{"a":"t","b":1.50,"c":{"d":[1, 2]},"e":null}'],
        [[("a", "t"), ("b", "1.50"), ("c", '{"d":[1, 2]}'), ("e", None)]],
    ),
    (pa.list_(pa.float64()), ['{"a":[1,2.5],"b":[]}'], [[("a", [1.0, 2.5]), ("b", [])]]),
    (pa.struct([("x", pa.int64())]), ['{"a":{"x":1},"b":{}}'], [[("a", {"x": 1}), ("b", {"x": None})]]),
    (pa.date32(), ['{"a":"2024-02-29"}'], [[("a", datetime.date(2024, 2, 29))]]),
    (pa.decimal128(5, 2), ['{"a":"1.25"}'], [[("a", Decimal("1.25"))]]),
]


@pytest.mark.parametrize(("data_type", "texts", "expected"), MAPS)
def test_objects_are_maps_where_the_schema_says_so(tmp_path, data_type, texts, expected):
    lines = [f'{{"m":{text},"n":{number}}}' for number, text in enumerate(texts)]
    (tmp_path / "a.json").write_text("\n".join([*lines, '{"n": 99}']))
    schema = pa.schema([("m", pa.map_(pa.string(), data_type)), ("n", pa.int64())])
    with Environment() as env:
        table = env.read_json(tmp_path / "a.json", schema).to_arrow()
    assert table.schema == schema
    assert table["m"].to_pylist() == [*expected, None]


def test_maps_that_are_written_are_read_again(tmp_path):
    data_type = pa.map_(pa.string(), pa.int64())
    table = pa.table({"m": pa.array([[("a", 1), ("b", None)], None, [], [("c", 2)]] * 5000, data_type)})
    with Environment(config={"parallelism.default": 2}) as env:
        env.from_arrow(table).write_json(tmp_path / "out")
        env.execute()
        again = env.read_json(tmp_path / "out", table.schema)
        assert (
            again.select(col("m").map.get("a").alias("a")).to_arrow()["a"].to_pylist() == [1, None, None, None] * 5000
        )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":1,"a":2}', "the map has the key 'a' twice"),
        ('{"a":"x"}', "changed from number to string"),
        ("5", "changed from array to number"),
        ('"{}"', "changed from array to string"),
    ],
)
def test_what_is_no_map_is_a_bad_row(tmp_path, text, reason):
    (tmp_path / "a.json").write_text(f'{{"m":{{"a":1}}}}\n{{"m":{text}}}\n{{"m":{{}}}}\n')
    schema = pa.schema([("m", pa.map_(pa.string(), pa.int64()))])
    with Environment() as env:
        with pytest.raises(JobExecutionError, match=reason) as caught:
            env.read_json(tmp_path / "a.json", schema).to_arrow()
        assert "line 2" in str(caught.value)
        kept = env.read_json(tmp_path / "a.json", schema, on_bad_row="skip").to_arrow()
    assert kept["m"].to_pylist() == [[("a", 1)], []]


def test_maps_are_read_as_their_text_too(tmp_path):
    (tmp_path / "a.json").write_text('{"m":{"x":1}}\n')
    with Environment() as env:
        data = env.read_json(tmp_path / "a.json", pa.schema([("m", pa.string())]))
        assert data.select(col("m").str.json_get("$.x").alias("x")).to_arrow().to_pylist() == [{"x": "1"}]
