"""Parts of a record data set and the manifest made of them, against what the rows say."""

import datetime
import decimal
import random
import zlib

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.connectors.records_manifest import decode_manifest
from engine.connectors.records_parts import WrittenPart, distinct_estimate, hand_on, records_manifest
from engine.connectors.records_source import records_source
from engine.connectors.records_writer import RecordsWriter
from engine.statistics.distinct_sketch import DistinctSketches

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("d", pa.date32()),
        ("n", pa.decimal128(12, 2)),
        ("l", pa.list_(pa.int64())),
        ("b", pa.binary()),
        ("e", pa.int32()),
    ]
)


def table(start, stop):
    return pa.table(
        {
            "i": list(range(start, stop)),
            "s": [None if i % 5 == 0 else "hot" if i % 5 < 3 else f"s{i % 90}" for i in range(start, stop)],
            "f": [float(i % 10) for i in range(start, stop)],
            "d": [datetime.date(2020, 1, 1) + datetime.timedelta(days=i % 400) for i in range(start, stop)],
            "n": [decimal.Decimal(i % 12) for i in range(start, stop)],
            "l": [[i] for i in range(start, stop)],
            "b": [b"%d" % (i % 3) for i in range(start, stop)],
            "e": [None] * (stop - start),
        },
        schema=SCHEMA,
    )


def written(folder, *tables, batch_rows=999):
    """Return the parts of a data set, written one by one."""
    parts = []
    for index, rows in enumerate(tables):
        path = folder / f"part-{index:05d}.parquet"
        writer = RecordsWriter(SCHEMA, str(path))
        for batch in rows.to_batches(batch_rows):
            writer.write(batch)
        count, size, statistics = writer.finish()
        parts.append(WrittenPart(path.name, count, size, statistics))
    return parts


def write(folder, *tables):
    """Return the manifest of a data set."""
    parts = written(folder, *tables)
    (folder / "_manifest.json").write_bytes(records_manifest(SCHEMA.serialize().to_pybytes(), parts))
    return decode_manifest((folder / "_manifest.json").read_bytes(), "_manifest.json")


def test_the_manifest_says_what_the_rows_say(tmp_path):
    manifest = write(tmp_path, table(0, 7_000), table(7_000, 20_000), table(0, 0))
    assert manifest.row_count == 20_000
    assert [file.rows for file in manifest.files] == [7_000, 13_000, 0]
    for file in manifest.files:
        content = (tmp_path / file.name).read_bytes()
        assert (file.bytes, file.crc32) == (len(content), zlib.crc32(content))
    columns = manifest.columns
    assert (columns["i"].min, columns["i"].max, columns["i"].null_count) == (0, 19_999, 0)
    assert (columns["s"].min, columns["s"].max, columns["s"].null_count) == ("hot", "s9", 4_000)
    assert (columns["f"].min, columns["f"].max) == (0.0, 9.0)
    assert (columns["d"].min, columns["d"].max) == ("2020-01-01", "2021-02-03")
    assert (columns["n"].min, columns["n"].max) == ("0.00", "11.00")
    assert (columns["b"].min, columns["l"].min, columns["e"].min) == (None, None, None)
    assert columns["e"].null_count == 20_000
    assert columns["l"].distinct_estimate is None
    for name, exact in {"i": 20_000, "s": 37, "f": 10, "d": 400, "n": 12, "b": 3, "e": 0}.items():
        assert columns[name].distinct_estimate == pytest.approx(exact, rel=0.05), name
    ((text, share),) = (pair for pair in columns["s"].heavy_keys if pair[1] > 0.1)
    assert text == "hot"
    assert share == pytest.approx(0.4, abs=0.02)
    assert len(columns["f"].heavy_keys) == 10
    assert not columns["i"].heavy_keys


def test_a_data_set_reads_back_with_its_statistics(tmp_path):
    rows = table(0, 5_000)
    write(tmp_path, rows)
    _, statistics, schema = records_source(tmp_path)
    assert schema == SCHEMA
    assert pq.read_table(tmp_path / "part-00000.parquet") == rows
    assert statistics.row_count == 5_000
    assert statistics.columns["i"].distinct_count == pytest.approx(5_000, rel=0.05)
    assert dict(statistics.columns["s"].heavy_keys)["hot"] == pytest.approx(0.4, abs=0.02)


def test_a_key_that_is_heavy_in_one_part_only_is_weighed(tmp_path):
    other = table(0, 9_000)
    heavy = other.slice(0, 1_000).set_column(0, "i", pa.array([7] * 1_000))
    manifest = write(tmp_path, heavy, other)
    assert manifest.columns["i"].heavy_keys == (("7", pytest.approx(0.1, abs=0.001)),)


def test_parts_of_a_subtask_hand_on_what_they_know_and_the_manifest_is_the_same(tmp_path):
    parts = written(tmp_path, table(0, 3_000), table(3_000, 3_100), table(3_100, 9_000), table(0, 1_000), table(0, 0))
    schema_ipc = SCHEMA.serialize().to_pybytes()
    whole = decode_manifest(records_manifest(schema_ipc, parts), "before")
    handed = list(parts)
    for index in (1, 2):  # the first three are of one subtask
        former, latter = hand_on(handed[index - 1].statistics_json, handed[index].statistics_json)
        handed[index - 1] = msgspec.structs.replace(handed[index - 1], statistics_json=former)
        handed[index] = msgspec.structs.replace(handed[index], statistics_json=latter)
    assert max(len(part.statistics_json) for part in handed[:2]) < 100
    assert len(handed[2].statistics_json) < 1.1 * len(parts[2].statistics_json)
    assert decode_manifest(records_manifest(schema_ipc, handed), "after") == whole


def test_the_same_parts_give_the_same_bytes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write(tmp_path / "a", table(0, 3_000), table(3_000, 4_000))
    write(tmp_path / "b", table(0, 3_000), table(3_000, 4_000))
    manifests = [(tmp_path / name / "_manifest.json").read_bytes() for name in "ab"]
    assert manifests[0] == manifests[1]


def test_a_data_set_without_rows_has_its_columns(tmp_path):
    manifest = write(tmp_path, table(0, 0))
    assert manifest.row_count == 0
    assert records_source(tmp_path)[2] == SCHEMA


@pytest.mark.parametrize("count", [0, 1, 10, 1_000, 20_000, 300_000])
def test_distinct_values_are_counted_to_a_few_percent(count):
    generator = random.Random(count)
    values = [generator.getrandbits(63) for _ in range(count)]
    batch = pa.record_batch({"x": pa.array(values + values[: count // 2] + [None], pa.int64())})
    sketches = DistinctSketches(batch.schema)
    sketches.add(batch)
    sketches.add(batch.slice(0, count // 3))
    assert distinct_estimate([sketches.registers("x")]) == pytest.approx(count, rel=0.05)


def test_sketches_of_parts_merge_into_that_of_the_whole():
    batch = pa.record_batch({"x": [f"v{index}" for index in range(30_000)]})
    whole, first, second = (DistinctSketches(batch.schema) for _ in range(3))
    whole.add(batch)
    first.add(batch.slice(0, 20_000))
    second.add(batch.slice(10_000))
    parts = [first.registers("x"), second.registers("x")]
    assert distinct_estimate(parts) == distinct_estimate([whole.registers("x")])


def test_statistics_are_small_and_plain(tmp_path):
    writer = RecordsWriter(SCHEMA, str(tmp_path / "x.parquet"))
    writer.write(table(0, 10).to_batches()[0])
    statistics = writer.finish()[2]
    assert len(statistics) < 8192 * len(SCHEMA)
    assert msgspec.json.decode(statistics)["columns"]["i"]["max"] == 9


def test_an_aborted_part_is_gone(tmp_path):
    writer = RecordsWriter(SCHEMA, str(tmp_path / "x.parquet"))
    writer.write(table(0, 10).to_batches()[0])
    writer.abort()
    assert not list(tmp_path.iterdir())
