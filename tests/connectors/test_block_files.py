"""Arrow IPC, ORC and Avro: each row is read once whatever the splits, only wanted columns, damage is named."""

import datetime
import decimal
import errno
import random
import subprocess
import sys
import uuid
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from pyarrow import orc

from engine.connectors import block_source as block_source_module
from engine.connectors.arrow_writer import ArrowWriter
from engine.connectors.block_reader import BlockReader
from engine.connectors.block_source import block_source
from engine.connectors.orc_writer import OrcWriter, check_orc_sink
from engine.errors import ConfigurationError, DataError, PlanError, SchemaError

ROOT = Path(__file__).parents[2]
TABLE = pa.table(
    {
        "id": pa.array(range(50_000), pa.int64()),
        "name": [f"name {index % 100}" if index % 7 else None for index in range(50_000)],
        "part": pa.array([[index, None] for index in range(50_000)], pa.list_(pa.int64())),
    }
)
FORMATS = ["ipc", "ipc lz4", "ipc stream", "orc"]


def stored(path, kind, table=TABLE):
    if kind == "orc":
        writer = OrcWriter(table.schema, path, "zlib")
    else:
        codec = "lz4" if kind.endswith("lz4") else ""
        writer = ArrowWriter(table.schema, path, codec, is_stream=kind.endswith("stream"))
    for batch in table.to_batches(max_chunksize=1000):
        writer.write(batch)
    rows, size, _ = writer.finish()
    assert (rows, size) == (table.num_rows, path.stat().st_size)
    return kind.split()[0]


def table_of(spec, splits=None):
    reader = BlockReader(spec, spec.splits if splits is None else splits)
    batches = list(reader)
    reader.close()
    assert max((batch.num_rows for batch in batches), default=0) <= 8192
    return pa.Table.from_batches(batches) if batches else None


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_come_back_once_and_only_wanted_columns(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(block_source_module, "_SPLIT_BYTES", 100_000)
    file_format = stored(tmp_path / "a", kind)
    spec, statistics, schema = block_source(file_format, tmp_path / "a")
    assert schema == TABLE.schema
    assert statistics.row_count == pytest.approx(50_000, rel=1)
    assert len(spec.splits) > 1 or kind != "ipc"
    parts = [table_of(spec, [split]) for split in spec.splits]
    assert pa.concat_tables(parts).sort_by("id").combine_chunks() == TABLE
    some = table_of(msgspec.structs.replace(spec, columns=("part", "id")))
    assert some.sort_by("id").combine_chunks() == TABLE.select(["part", "id"])
    none = BlockReader(msgspec.structs.replace(spec, columns=()), spec.splits)
    assert sum(batch.num_rows for batch in none) == 50_000


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_without_rows_has_the_schema(tmp_path, kind):
    file_format = stored(tmp_path / "a", kind, TABLE.slice(0, 0))
    spec, _, schema = block_source(file_format, tmp_path / "a")
    assert schema == TABLE.schema
    assert table_of(spec) is None


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_cut_or_changed_is_an_error_that_names_the_file(tmp_path, kind):
    path = tmp_path / "a"
    file_format = stored(path, kind)
    whole = path.read_bytes()
    chance = random.Random(2)
    outcomes = set()
    for _ in range(25):
        data = bytearray(whole)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        else:
            for _ in range(30):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        try:
            spec, _, _ = block_source(file_format, path)
            table_of(spec)
            outcomes.add("values")
        except (DataError, PlanError, SchemaError) as error:
            assert str(path) in str(error)
            outcomes.add("error")
    assert "error" in outcomes


def test_encoded_types_are_plain_and_files_must_agree(tmp_path):
    coded = pa.table({"s": pa.array(["a", "b", None]).dictionary_encode()})
    stored(tmp_path / "1.arrow", "ipc", coded)
    stored(tmp_path / "2.arrow", "ipc", pa.table({"s": ["c"]}))
    spec, _, schema = block_source("ipc", tmp_path)
    assert schema == pa.schema([("s", pa.string())])
    assert table_of(spec).column("s").to_pylist() == ["a", "b", None, "c"]
    stored(tmp_path / "3.arrow", "ipc", pa.table({"s": [1]}))
    with pytest.raises(SchemaError, match=r"3\.arrow: column 's' is int64, in .*1\.arrow it is string"):
        block_source("ipc", tmp_path)
    stored(tmp_path / "4.arrow", "ipc", pa.table({"t": [1]}))
    with pytest.raises(SchemaError, match=r"columns differ|column 's'"):
        block_source("ipc", tmp_path)
    (tmp_path / "x").write_bytes(b"no such thing" * 10)
    for file_format in ("ipc", "orc", "avro"):
        with pytest.raises((PlanError, DataError), match="x is not a whole"):
            block_source(file_format, tmp_path / "x")


def test_orc_says_what_it_cannot_store(tmp_path):
    with pytest.raises(SchemaError, match=r"'t' is time64.*which ORC cannot store"):
        check_orc_sink(pa.schema([("t", pa.time64("us"))]), "zlib")
    for data_type in (pa.decimal128(5, -2), pa.list_(pa.decimal128(5, -2))):
        with pytest.raises(SchemaError, match=r"'t' is .*decimal128\(5, -2\).*no negative scales; cast it"):
            check_orc_sink(pa.schema([("t", data_type)]), "zlib")
    with pytest.raises(ConfigurationError, match="write_orc: compression='gz': choose one of none"):
        check_orc_sink(TABLE.schema, "gz")
    stored(tmp_path / "a", "orc")
    assert orc.read_table(tmp_path / "a") == TABLE
    writer = OrcWriter(TABLE.schema, tmp_path / "b", "zstd")
    writer.abort()
    assert not (tmp_path / "b").exists()


AVRO = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "exact", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {"name": "inner", "type": {"type": "record", "name": "In", "fields": [{"name": "x", "type": "double"}]}},
        {"name": "raw", "type": {"type": "fixed", "name": "F", "size": 2}},
    ],
}


def avro_row(index):
    return {
        "id": index,
        "name": None if index % 3 else "n",
        "day": datetime.date(2020, 1, 1),
        "at": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        "exact": decimal.Decimal("1.25"),
        "key": uuid.UUID(int=index),
        "kind": "AB"[index % 2],
        "tags": {"t": 1},
        "inner": {"x": 0.5},
        "raw": b"ab",
    }


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_avro_rows_come_back_with_their_types(tmp_path, codec):
    fastavro = pytest.importorskip("fastavro")
    path = tmp_path / "a.avro"
    with path.open("wb") as file:
        fastavro.writer(file, AVRO, map(avro_row, range(3000)), codec=codec)
    spec, _, schema = block_source("avro", path)
    assert schema.field("at").type == pa.timestamp("us", "UTC")
    assert schema.field("exact").type == pa.decimal128(9, 2)
    table = table_of(spec)
    expected = [{**avro_row(index), "key": str(uuid.UUID(int=index)), "tags": [("t", 1)]} for index in range(3000)]
    assert table.to_pylist() == expected
    some = table_of(msgspec.structs.replace(spec, columns=("kind", "id")))
    assert some.to_pylist() == [{"kind": row["kind"], "id": row["id"]} for row in expected]
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises((DataError, PlanError), match=r"a\.avro"):
        table_of(block_source("avro", path)[0])


def test_avro_says_what_has_no_column_and_what_is_missing(tmp_path, monkeypatch):
    fastavro = pytest.importorskip("fastavro")
    path = tmp_path / "a.avro"
    schema = {"type": "record", "name": "R", "fields": [{"name": "x", "type": ["int", "string"]}]}
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"x": 1}])
    with pytest.raises(SchemaError, match="column 'x': a union of 2 types has no column"):
        block_source("avro", path)
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'drey-engine\[avro\]'"):
        block_source("avro", path)


FULL_DISK = """
import resource, sys
from pathlib import Path
import pyarrow as pa
from engine.connectors.arrow_writer import ArrowWriter
from engine.connectors.orc_writer import OrcWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
kind, path = sys.argv[1], Path(sys.argv[2])
batch = pa.record_batch({"a": [f"{n * 7919 % 1000003:0200d}" for n in range(20_000)]})
writer = OrcWriter(batch.schema, path, "none") if kind == "orc" else ArrowWriter(batch.schema, path)
for left in range(20, -1, -1):
    try:
        writer.write(batch) if left else writer.finish()
    except OSError as error:
        writer.abort()
        print(left > 0, error.errno, path.exists())
        break
"""


@pytest.mark.parametrize("kind", ["orc", "ipc"])
def test_a_disk_that_is_full_is_an_error_and_not_the_end_of_the_process(tmp_path, kind):
    script = [sys.executable, "-c", FULL_DISK, kind, str(tmp_path / "file")]
    ended = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, f"True {errno.EFBIG} False\n"), ended.stderr


@pytest.mark.parametrize("data_type", [pa.timestamp("us"), pa.timestamp("s", tz="Europe/Berlin")])
def test_times_that_readers_of_orc_do_not_have_are_refused(tmp_path, data_type):
    moments = [datetime.datetime(1677, 9, 22), None, datetime.datetime(2262, 4, 11)]
    table = pa.table({"t": pa.array(moments, data_type)})
    path = stored(tmp_path / "near.orc", "orc", table)
    assert orc.read_table(tmp_path / "near.orc").column("t").null_count == 1, path
    writer = OrcWriter(table.schema, tmp_path / "far.orc", "none")
    for far in (datetime.datetime(9999, 12, 31), datetime.datetime(1677, 9, 20)):
        with pytest.raises(DataError, match=r"write_orc: column 't': .* is beyond the years 1677 to 2262.*; cast the"):
            writer.write(pa.record_batch({"t": pa.array([None, far], data_type)}))
    writer.abort()
