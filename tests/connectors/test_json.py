"""JSON lines in and out: whatever the splits each row is read once; damage is named by file and line."""

import datetime
import decimal
import gzip
import json
import math
import re
import warnings
from itertools import pairwise

import duckdb
import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Environment
from engine.connectors.json_reader import JsonReader
from engine.connectors.json_source import json_source, with_splits
from engine.connectors.json_writer import JsonWriter, check_json_sink
from engine.csv.writer import CsvWriter
from engine.errors import ConfigurationError, DataError, DreyWarning, PlanError, SchemaError
from engine.formats.registry import open_source
from engine.graph.source_spec import SourceSplit

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows_of(spec, splits=None, block_bytes=1 << 20):
    found = []
    for split in spec.splits if splits is None else splits:
        reader = JsonReader(spec, [split], block_bytes)
        found += [row for batch in reader for row in batch.to_pylist()]
        reader.close()
    return found


def write(path, rows, schema):
    writer = JsonWriter(schema, path)
    for row in rows:
        writer.write(pa.RecordBatch.from_pylist([row], schema=schema))
    return writer.finish()


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ROWS = st.lists(st.fixed_dictionaries({"id": st.none() | st.integers(-9, 9), "name": st.none() | TEXTS}), max_size=12)


@given(ROWS, st.data())
def test_every_row_comes_back_once_wherever_splits_are_cut(tmp_path_factory, rows, data):
    path = tmp_path_factory.mktemp("json") / "a.json"
    write(path, rows, SCHEMA)
    assert [json.loads(line) for line in path.read_bytes().split(b"\n") if line] == rows
    size = path.stat().st_size
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=4)))
    splits = [SourceSplit(str(path), start, end, end - start) for start, end in pairwise([0, *cuts, size])]
    spec, _, _ = json_source(path, SCHEMA)
    assert rows_of(spec, splits, data.draw(st.sampled_from([1, 3, 17, 1 << 20]))) == rows


def test_blank_lines_missing_and_other_members_and_no_last_line_end(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf{"id":1,"more":[{}]}\r\n\n {"name":"x","id":null}\n{"id":3,"name":""}')
    spec, statistics, schema = json_source(path, SCHEMA, 4)
    expected = [{"id": 1, "name": None}, {"id": None, "name": "x"}, {"id": 3, "name": ""}]
    assert rows_of(spec) == expected
    assert rows_of(spec, block_bytes=4) == expected
    assert (schema, statistics.row_count) == (SCHEMA, 3)
    none = msgspec.structs.replace(spec, columns=())
    assert sum(batch.num_rows for batch in JsonReader(none, none.splits)) == 3


def test_a_schema_is_inferred_from_lines_all_over_the_file(tmp_path):
    path = tmp_path / "a.json"
    lines = [b'{"id": %d, "n": null, "deep": {"a": [1]}}' % index for index in range(60_000)]
    lines += [b'{"id": %d.5, "late": "x"}' % index for index in range(30_000)]
    path.write_bytes(b"\n".join(lines))
    spec, statistics, schema = json_source(path, parallelism=3)
    assert schema == pa.schema(
        [
            ("id", pa.float64()),
            ("n", pa.string()),
            ("deep", pa.struct([("a", pa.list_(pa.int64()))])),
            ("late", pa.string()),
        ]
    )
    assert statistics.row_count == pytest.approx(90_000, rel=0.2)
    assert "schema inferred: id double, n string" in statistics.origin
    spec = with_splits(spec, 3)
    assert len(spec.splits) > 1
    found = rows_of(spec)
    assert len(found) == 90_000
    assert found[0] == {"id": 0.0, "n": None, "deep": {"a": [1]}, "late": None}


def test_types_that_json_has_not_come_from_texts_and_numbers(tmp_path):
    schema = pa.schema(
        [
            ("day", pa.date32()),
            ("time", pa.time64("us")),
            ("moment", pa.timestamp("us")),
            ("exact", pa.decimal128(10, 2)),
            ("span", pa.duration("s")),
            ("large", pa.large_list(pa.int8())),
            ("raw", pa.binary(3)),
            ("deep", pa.struct([("day", pa.date32())])),
        ]
    )
    row = {
        "day": datetime.date(2020, 2, 29),
        "time": datetime.time(1, 2, 3),
        "moment": datetime.datetime(2020, 1, 1, 2, 3, 4, 5),
        "exact": decimal.Decimal("1.25"),
        "span": datetime.timedelta(seconds=7),
        "large": [1, None],
        "raw": b"abc",
        "deep": {"day": datetime.date(1999, 1, 1)},
    }
    rows = [row, dict.fromkeys(schema.names)]
    write(tmp_path / "a.json", rows, schema)
    spec, _, _ = json_source(tmp_path / "a.json", schema)
    assert rows_of(spec) == rows


@pytest.mark.parametrize("block_bytes", [8, 1 << 20])
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": "x"}', r"Column\(/id\) changed from number to string"),
        (b'{"id": 1', "not whole on its line; JSON lines has one object a line: jq -c"),
        (b'{"id": 1 2}', "Missing a comma"),
        (b"[1]", "changed from object to array"),
        (b" null", "null is no object"),
        (b'{"name": "\xff"}', "bytes that are not UTF-8; iconv -f cp1252 -t UTF-8 FILE > NEW converts the file"),
        (b'{"id": 99999999999999999999}', "couldn't parse:99999999999999999999"),
    ],
)
def test_a_malformed_line_is_named_by_file_and_line(tmp_path, line, reason, block_bytes):
    path = tmp_path / "a.json"
    path.write_bytes(b'{"id":1}\n' * 70 + b"\n" + line + b"\n" + b'{"id":2}\n' * 30)
    spec, _, _ = json_source(path, SCHEMA)
    with pytest.raises(DataError, match=rf"file {path}, line 72: .*{reason}"):
        rows_of(spec, block_bytes=block_bytes)


@pytest.mark.parametrize("wrap", [lambda kind: kind, pa.list_, lambda kind: pa.struct([("a", kind)])])
@pytest.mark.parametrize("number", ["1234.5", '"1234.5"', "12345"])
def test_a_decimal_with_more_digits_than_its_type_has_is_malformed(tmp_path, wrap, number):
    schema = pa.schema([("id", wrap(pa.decimal128(5, 2)))])
    form = {pa.ListType: "[{}]", pa.StructType: '{{"a": {}}}'}.get(type(schema.field(0).type), "{}")
    path = tmp_path / "a.json"
    path.write_text("".join(f'{{"id": {form.format(each)}}}\n' for each in ("999.99", number)))
    spec, _, _ = json_source(path, schema)
    with pytest.raises(DataError, match=r"line 2: .*precision"):
        rows_of(spec)


@pytest.mark.parametrize("schema", [SCHEMA, pa.schema([("id", pa.decimal128(5))])], ids=["native", "by Arrow"])
def test_a_line_of_null_is_no_row(tmp_path, schema):
    path = tmp_path / "a.json"
    path.write_bytes(b"null\n")
    spec, _, _ = json_source(path, schema)
    with pytest.raises(DataError, match="line 1: null is no object"):
        rows_of(spec)
    with pytest.raises(SchemaError, match="null is no object"):
        json_source(path)
    path.write_bytes(b'null\n{"id":1}\n\nnull\n')
    spec, _, _ = json_source(path, schema, on_bad_row="skip")
    assert [row["id"] for row in rows_of(spec)] == [1]
    assert [row["id"] for row in rows_of(spec, block_bytes=4)] == [1]


def test_what_cannot_be_read_is_said_when_the_plan_is_built(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(PlanError, match="read_json"):
        json_source(path)
    path.write_bytes(b"")
    with pytest.raises(SchemaError, match="is empty and there is no schema; pass schema="):
        json_source(path)
    path.write_bytes(b'[{"a": 1}]')
    with pytest.raises(SchemaError, match=r"one JSON array, and JSON lines are read.*jq -c"):
        json_source(path)
    path.write_bytes(b'{"a": 1}\n{"a": "x"}\n')
    with pytest.raises(SchemaError, match=r"no schema can be inferred: .*Column\(/a\).*; pass schema= with string"):
        json_source(path)
    for broken, place in ((b'{"a": 1}\n\n{"a":', "Invalid value in line 3"), (b'{"a":1,"a":2}', "twice in line 1")):
        path.write_bytes(broken)
        with pytest.raises(
            SchemaError, match=rf"{place}; mend it, or pass schema= and on_bad_row='skip', which leaves"
        ):
            json_source(path)
    text, number = pa.string(), pa.int64()
    maps = [pa.map_(number, number), pa.list_(pa.map_(number, text)), pa.map_(text, pa.map_(number, number))]
    for data_type in maps:
        with pytest.raises(
            SchemaError, match=r"'m' cannot be read as .*map.*its JSON text.*the keys of a map are strings"
        ):
            json_source(path, pa.schema([("m", data_type)]))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "18446744073709551615", "null"], pa.uint64()),
        (["9223372036854775808"], pa.uint64()),
        (["-1", "9223372036854775808"], pa.decimal128(38, 0)),
        (["123456789012345678901234567890", "-5"], pa.decimal128(38, 0)),
        (["-9223372036854775808", "9223372036854775807"], pa.int64()),
    ],
)
def test_whole_numbers_beyond_int64_are_kept(tmp_path, texts, expected):
    path = tmp_path / "a.json"
    path.write_text("".join(f'{{"id": {text}, "price": {price}.0}}\n' for price, text in enumerate(texts)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec, _, schema = json_source(path)
    assert schema == pa.schema({"id": expected, "price": pa.float64()})
    assert [row["id"] for row in rows_of(spec)] == [None if text == "null" else int(text) for text in texts]


@pytest.mark.parametrize("texts", [["12345678901234567890", "1.5"], ["1" * 40], ["12345678901234567890", "1e3"]])
def test_whole_numbers_that_only_a_double_takes_are_warned_of(tmp_path, texts):
    path = tmp_path / "a.json"
    path.write_text("".join(f'{{"id": {text}}}\n' for text in texts))
    with pytest.warns(DreyWarning, match="17 digits and more in column 'id' are read as float64"):
        spec, _, schema = json_source(path)
    assert schema == pa.schema({"id": pa.float64()})
    assert [row["id"] for row in rows_of(spec)] == [float(text) for text in texts]


def test_compressed_lines_are_one_split(tmp_path):
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"".join(b'{"id":%d}\n' % index for index in range(200_000))))
    spec, _, schema = json_source(path, parallelism=4)
    assert (len(spec.splits), schema) == (1, pa.schema([("id", pa.int64())]))
    assert [row["id"] for row in rows_of(spec)] == list(range(200_000))


def test_nested_values_special_numbers_and_slices_are_written_as_duckdb_reads_them(tmp_path):
    table = pa.table(
        {
            "f": [1.5, math.nan, math.inf, None],
            "s": ['a"b\\c\n\x01é', None, "", "plain"],
            "b": [True, None, False, True],
            "l": pa.array([[1, None], None, [], [2]]),
            "st": pa.array([{"a": 1, "b": "q"}, None, {"a": None, "b": None}, {"a": 2, "b": '"'}]),
            "m": pa.array([[("k", 1), ("j", None)], None, [], [("x", 2)]], pa.map_(pa.string(), pa.int64())),
            "fixed": pa.array([[1, 2], None, [3, None], [4, 5]], pa.list_(pa.int8(), 2)),
        }
    )
    expected = [
        {**row, "f": row["f"] if row["f"] == 1.5 else None, "m": None if row["m"] is None else dict(row["m"])}
        for row in table.to_pylist()
    ]
    path = tmp_path / "a.json"
    writer = JsonWriter(table.schema, path)
    (batch,) = table.to_batches()
    for start in range(4):
        writer.write(batch.slice(start, 1))
    writer.write(batch)
    rows, size, _ = writer.finish()
    assert (rows, size) == (8, path.stat().st_size)
    assert [json.loads(line) for line in path.read_text().splitlines()] == expected * 2
    read = duckdb.sql(f"SELECT s, l, st FROM read_json('{path}')").fetchall()
    assert read[:4] == [(row["s"], row["l"], row["st"]) for row in expected]


def test_what_has_no_form_in_json_is_refused(tmp_path):
    with pytest.raises(SchemaError, match="'m' is map<int64, int64>, which has no form in JSON"):
        check_json_sink(pa.schema([("m", pa.map_(pa.int64(), pa.int64()))]))
    with pytest.raises(DataError, match="'raw' has bytes that are not UTF-8"):
        write(tmp_path / "a.json", [{"raw": b"\xff"}], pa.schema([("raw", pa.binary())]))
    with pytest.raises(DataError, match="'raw' has bytes that are not UTF-8"):
        write(tmp_path / "b.json", [{"id": 1, "raw": b"\xff"}], pa.schema([("id", pa.int8()), ("raw", pa.binary(1))]))
    with pytest.raises(DataError, match="'raw' has bytes that are not UTF-8"):
        write(tmp_path / "c.json", [{"raw": [b"\xff"]}], pa.schema([("raw", pa.list_(pa.binary()))]))


BAD_LINES = [b"{", b"17", b'{"id":"x"}', b'{"id":1.5}', b"nothing", b'{"name":7', b'{"name":"\xff"}', b'"text"']


@given(st.lists(st.none() | st.sampled_from(BAD_LINES), max_size=40), st.data())
def test_bad_lines_are_left_out_and_counted_wherever_blocks_end(tmp_path_factory, lines, data):
    path = tmp_path_factory.mktemp("json") / "a.json"
    good = [{"id": number, "name": f"n{number}"} for number, line in enumerate(lines) if line is None]
    texts = [line or json.dumps({"id": number, "name": f"n{number}"}).encode() for number, line in enumerate(lines)]
    path.write_bytes(b"\n".join(texts))
    spec, _, _ = json_source(path, SCHEMA, on_bad_row="skip")
    block_bytes = data.draw(st.sampled_from([1, 30, 200, 1 << 20]))
    reader = JsonReader(spec, spec.splits, block_bytes)
    assert [row for batch in reader for row in batch.to_pylist()] == good
    assert reader.bad_rows == len(lines) - len(good)
    reader.close()
    # whichever columns are wanted, the rows are the same
    assert rows_of(msgspec.structs.replace(spec, columns=("id",))) == [{"id": row["id"]} for row in good]
    assert len(rows_of(msgspec.structs.replace(spec, columns=()))) == len(good)


def test_a_word_for_bad_rows_that_is_none_is_refused(tmp_path):
    (tmp_path / "a.json").write_text('{"id":1}\n')
    with pytest.raises(ConfigurationError, match="on_bad_row='null': choose one of fail, skip"):
        json_source(tmp_path / "a.json", SCHEMA, on_bad_row="null")


def test_bad_lines_of_a_job_are_counted_in_its_result(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"\n".join(b"{" if number % 10 == 0 else b'{"id":%d}' % number for number in range(1000)))
    with Environment(config={"parallelism.default": 2}) as env:
        env.read_json(path, SCHEMA, on_bad_row="skip").write_csv(str(tmp_path / "out"))
        assert env.execute("lines").bad_rows == 100


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", "+05:30", "America/St_Johns", None])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_are_those_of_csv_by_iso_8601(tmp_path, zone, unit):
    moments = pa.array([1_719_837_001_500, -1], pa.timestamp("ms", "UTC")).cast(pa.timestamp(unit, zone), safe=False)
    batch = pa.record_batch({"t": moments})
    csv, json_lines = CsvWriter(batch.schema, tmp_path / "a.csv"), JsonWriter(batch.schema, tmp_path / "a.json")
    for writer in (csv, json_lines):
        writer.write(batch)
        writer.finish()
    lines = (tmp_path / "a.csv").read_text().splitlines()
    texts = [re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", line.replace(" ", "T")) for line in lines]
    assert [json.loads(line)["t"] for line in (tmp_path / "a.json").read_text().splitlines()] == texts
    spec, _, schema = json_source(tmp_path / "a.json", batch.schema)
    assert pa.Table.from_batches(open_source(spec, spec.splits), schema)["t"].combine_chunks() == moments


@pytest.mark.parametrize(
    ("deep", "said"), [(300, "column 's' is nested more than 32 deep"), (20_000, "more than 2048 deep")]
)
def test_a_schema_of_deep_lists_is_refused(tmp_path, deep, said):
    (tmp_path / "a.json").write_text(f'{{"id": 1, "s": {"[" * deep}{"]" * deep}}}\n')
    with pytest.raises(SchemaError, match=said):
        json_source(tmp_path / "a.json")


@pytest.mark.parametrize("size", [200_000, 2_000_000])
@pytest.mark.parametrize("place", [1, 3])
def test_lines_longer_than_a_sample_are_left_out_of_it(tmp_path, size, place):
    lines = [f'{{"id": {number}, "s": "{"x" * (size if number == place else 5)}"}}\n' for number in range(40)]
    (tmp_path / "a.json").write_text("".join(lines))
    assert json_source(tmp_path / "a.json")[2] == pa.schema([("id", pa.int64()), ("s", pa.string())])


def test_a_first_line_longer_than_the_sample_has_no_schema(tmp_path):
    (tmp_path / "a.json").write_text(f'{{"id": 1, "s": "{"x" * 2_000_000}"}}\n')
    with pytest.raises(SchemaError, match="the first line is longer than the 1 MB by which a schema is inferred; pass"):
        json_source(tmp_path / "a.json")
