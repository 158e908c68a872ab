"""What is written is read back the same; a CSV file is what RFC 4180 says."""

import csv
import datetime
import decimal
import io
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.sink_writer import open_sink_writer
from engine.csv.options import CsvOptions
from engine.csv.source import csv_source
from engine.csv.splits import exact_splits
from engine.csv.writer import check_csv_sink
from engine.errors import ConfigurationError, PlanError, SchemaError
from engine.formats.registry import open_source
from engine.graph.source_spec import SinkSpec
from engine.parquet.source import parquet_source

EVERYTHING = pa.schema(
    [
        ("flag", pa.bool_()),
        ("small", pa.int8()),
        ("big", pa.uint64()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("exact", pa.decimal128(20, 4)),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us")),
        ("time", pa.time64("us")),
        ("text", pa.string()),
        ("large", pa.large_string()),
        ("raw", pa.binary()),
    ]
)
ROWS = [
    {
        "flag": True,
        "small": -128,
        "big": 2**64 - 1,
        "single": 0.5,
        "double": 1e-300,
        "exact": decimal.Decimal("-12345678.9012"),
        "day": datetime.date(1969, 7, 20),
        "moment": datetime.datetime(2024, 2, 29, 23, 59, 59, 999999),
        "time": datetime.time(1, 2, 3, 4),
        "text": 'say "hi", twice\n',
        "large": "",
        "raw": b"plain",
    },
    dict.fromkeys(EVERYTHING.names),
    {
        "flag": False,
        "small": 0,
        "big": 0,
        "single": -0.0,
        "double": math.inf,
        "exact": decimal.Decimal("0.0001"),
        "day": datetime.date(2024, 1, 1),
        "moment": datetime.datetime(1970, 1, 1),
        "time": datetime.time(0, 0),
        "text": "",
        "large": "é",
        "raw": b"",
    },
]


def write(format_name, schema, batches, path, **options):
    writer = open_sink_writer(SinkSpec(format_name, "", **options), schema, path)
    for batch in batches:
        writer.write(batch)
    return writer.finish()


def read_csv(path, schema, **options):
    spec, _, _ = csv_source(path, schema, CsvOptions(**options))
    return pa.Table.from_batches(list(open_source(spec, exact_splits(spec, 2).splits)), schema=schema)


@pytest.mark.parametrize("format_name", ["csv", "parquet", "arrow"])
def test_every_type_survives_a_file(tmp_path, format_name):
    batch = pa.RecordBatch.from_pylist(ROWS, schema=EVERYTHING)
    path = tmp_path / "part"
    rows, size, statistics = write(format_name, EVERYTHING, [batch, batch.slice(1)], path)
    assert (rows, size, statistics) == (5, path.stat().st_size, "")
    expected = [*ROWS, *ROWS[1:]]
    if format_name == "csv":
        assert read_csv(path, EVERYTHING).to_pylist() == expected
    elif format_name == "parquet":
        spec, known, schema = parquet_source(path)
        assert (schema, known.row_count) == (EVERYTHING, 5)
        assert pa.Table.from_batches(list(open_source(spec, spec.splits))).to_pylist() == expected
    else:
        with pa.OSFile(str(path)) as file:
            assert pa.ipc.open_file(file).read_all().to_pylist() == expected


TEXTS = st.none() | st.text(alphabet='ab,;"\n\r é', max_size=20)


@given(rows=st.lists(st.tuples(TEXTS, TEXTS), max_size=20), offset=st.integers(0, 3))
def test_csv_text_is_what_the_csv_module_reads_and_no_quote_is_in_vain(tmp_path_factory, rows, offset):
    schema = pa.schema([("a", pa.string()), ("b", pa.string())])
    batch = pa.RecordBatch.from_arrays(
        [pa.array(column, pa.string()) for column in zip(*rows, strict=True)] if rows else [[], []], schema=schema
    )
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    write("csv", schema, [batch.slice(offset)], path)
    rows = rows[offset:]
    text = path.read_bytes().decode()
    found = list(csv.reader(io.StringIO(text, newline="")))
    assert found == [[one or "", other or ""] for one, other in rows]
    assert read_csv(path, schema).to_pylist() == [{"a": one, "b": other} for one, other in rows]
    needed = sum(1 for row in rows for value in row if value is not None and (not value or set(value) & set(',"\n\r')))
    doubled = sum(value.count('"') for row in rows for value in row if value is not None)
    assert text.count('"') == 2 * needed + 2 * doubled


def test_one_column_of_nulls_keeps_its_rows(tmp_path):
    schema = pa.schema([("a", pa.string())])
    write("csv", schema, [pa.record_batch({"a": ["x", None, "", None]})], tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b'x\n\n""\n\n'
    assert read_csv(tmp_path / "x", schema).column("a").to_pylist() == ["x", None, "", None]


def test_a_header_and_another_delimiter(tmp_path):
    schema = pa.schema([("a,b", pa.int64()), ("c;d", pa.string())])
    batch = pa.RecordBatch.from_pylist([{"a,b": 1, "c;d": "x;y"}], schema=schema)
    write("csv", schema, [batch], tmp_path / "x", header=True, delimiter=";")
    assert (tmp_path / "x").read_text() == 'a,b;"c;d"\n1;"x;y"\n'
    assert read_csv(tmp_path / "x", schema, header=True, delimiter=";").to_pylist() == batch.to_pylist()


@given(values=st.lists(st.floats(allow_nan=False) | st.integers(-(2**53), 2**53).map(float)))
def test_floats_read_back_as_the_same_number(tmp_path_factory, values):
    schema = pa.schema([("f", pa.float64()), ("n", pa.int8())])
    path = tmp_path_factory.mktemp("csv") / "x"
    write(
        "csv",
        schema,
        [pa.record_batch([pa.array(values, pa.float64()), pa.array([1] * len(values), pa.int8())], schema=schema)],
        path,
    )
    assert read_csv(path, schema).column("f").to_pylist() == values


def test_what_has_no_text_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(SchemaError, match="column 'l' is list"):
        check_csv_sink(pa.schema([("l", pa.list_(pa.int8()))]), ",")
    for delimiter in ("", "ab", '"', "\n", "1", "-", "."):
        with pytest.raises(ConfigurationError, match="delimiter="):
            check_csv_sink(pa.schema([("n", pa.int8())]), delimiter)
    with pytest.raises(PlanError, match="there is no format"):
        open_sink_writer(SinkSpec("xml", ""), pa.schema([]), tmp_path / "x")


@pytest.mark.parametrize("format_name", ["csv", "parquet", "arrow"])
def test_aborting_removes_the_file_and_finishing_keeps_it(tmp_path, format_name):
    schema = pa.schema([("n", pa.int64())])
    writer = open_sink_writer(SinkSpec(format_name, ""), schema, tmp_path / "x")
    writer.write(pa.record_batch({"n": [1]}))
    writer.abort()
    writer.abort()
    assert list(tmp_path.iterdir()) == []
    write(format_name, schema, [], tmp_path / "empty")
    assert (tmp_path / "empty").exists()
    with pytest.raises(FileExistsError):
        open_sink_writer(SinkSpec(format_name, ""), schema, tmp_path / "empty")


def test_row_groups_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.parquet.writer.ROW_GROUP_ROWS", 1000)
    schema = pa.schema([("n", pa.int64())])
    batches = [pa.record_batch({"n": list(range(300))})] * 10
    write("parquet", schema, batches, tmp_path / "x.parquet")
    metadata = pq.read_metadata(tmp_path / "x.parquet")
    assert [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)] == [
        1000,
        200,
        1000,
        200,
        600,
    ]


def test_rows_that_are_only_measured_are_counted_and_nothing_is_written(tmp_path):
    schema = pa.schema([("n", pa.int64())])
    writer = open_sink_writer(SinkSpec("discard", ""), schema, tmp_path / "x")
    for count in (3, 4):
        writer.write(pa.record_batch([list(range(count))], schema))
    assert writer.finish() == (7, 0, "")
    assert (tmp_path / "x").read_bytes() == b""
    with pytest.raises(FileExistsError):
        open_sink_writer(SinkSpec("discard", ""), schema, tmp_path / "x")
    open_sink_writer(SinkSpec("discard", ""), schema, tmp_path / "y").abort()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
