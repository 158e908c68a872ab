"""ParquetWriter: what the first rows decide about a file."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.errors import DataError
from engine.parquet import writer as parquet_writer
from engine.parquet.column_forms import PLAIN_WIDTH_MIN
from engine.parquet.writer import ParquetWriter
from engine.records.wide_rows import WIDE_BYTES

SCHEMA = pa.schema([("id", pa.int64()), ("blob", pa.binary())])


def test_a_file_is_full_when_its_footer_has_enough_of_the_leaves_of_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_writer, "ROW_GROUP_ROWS", 10)
    monkeypatch.setattr(parquet_writer, "CHUNKS_MAX", 30)
    nested = pa.struct([("x", pa.int8()), ("y", pa.list_(pa.string()))])
    schema = pa.schema([("id", pa.int64()), ("pair", nested), ("map", pa.map_(pa.string(), pa.int64()))])
    writer = ParquetWriter(schema, tmp_path / "part.parquet")
    rows = 0
    while not writer.is_full:
        writer.write(pa.record_batch([[1], [{"x": 1, "y": ["a"]}], [[("k", 2)]]], schema))
        rows += 1
    assert writer.finish()[0] == rows == 60
    footer = pq.read_metadata(tmp_path / "part.parquet")
    assert (footer.num_row_groups, footer.num_columns) == (6, 5)


@pytest.mark.parametrize("before", [None, b"short"])
def test_wide_values_behind_a_narrow_row_are_written_as_they_are(tmp_path, before):
    wide = bytes(max(PLAIN_WIDTH_MIN, WIDE_BYTES) + 1)
    writer = ParquetWriter(SCHEMA, tmp_path / "part.parquet")
    for row in ((0, before), (1, wide)):
        writer.write(pa.record_batch([[value] for value in row], SCHEMA))
    assert writer.finish()[0] == 2
    with pq.ParquetFile(tmp_path / "part.parquet") as file:
        column = file.metadata.row_group(0).column(1)
        assert column.compression == "UNCOMPRESSED"
        assert column.statistics is None
        assert file.read().column("blob").to_pylist() == [before, wide]


def test_very_wide_values_behind_row_groups_of_narrow_ones_are_written_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_writer, "ROW_GROUP_ROWS", 100)
    schema = pa.schema([("id", pa.int64()), ("blob", pa.binary()), ("text", pa.string())])
    wide = bytes(max(PLAIN_WIDTH_MIN, WIDE_BYTES) + 1)
    rows = [(index, b"short", "s") for index in range(250)]
    rows += [(300, wide, "t"), (301, None, "u"), (302, b"short again", wide.decode()), (303, b"", "v")]
    writer = ParquetWriter(schema, tmp_path / "part.parquet", has_checksums=True)
    for start in (*range(0, 250, 50), *range(250, len(rows))):
        end = start + 50 if start < 250 else start + 1
        columns = [list(column) for column in zip(*rows[start:end], strict=True)]
        writer.write(pa.record_batch(columns, schema))
    assert writer.finish()[0] == len(rows)
    path = tmp_path / "part.parquet"
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        assert [tuple(row.values()) for row in file.read().to_pylist()] == rows
        groups = [file.metadata.row_group(index) for index in range(file.num_row_groups)]
    compressions = [tuple(group.column(index).compression for index in (1, 2)) for group in groups]
    assert compressions[0] == ("SNAPPY", "SNAPPY")
    assert ("UNCOMPRESSED", "SNAPPY") in compressions
    assert compressions[-1] == ("UNCOMPRESSED", "UNCOMPRESSED")
    assert groups[-1].column(1).statistics is None
    found = duckdb.connect().execute(f"SELECT count(*), sum(id), sum(length(text)) FROM '{path}'").fetchone()
    assert found == (len(rows), sum(row[0] for row in rows), sum(len(row[2]) for row in rows))


@pytest.mark.parametrize(
    ("kind", "value", "paths"),
    [
        (pa.list_(pa.string()), lambda wide: ["a", wide, None], ["x.list.element"]),
        (pa.large_list(pa.binary()), lambda wide: [wide.encode()], ["x.list.element"]),
        (pa.struct([("n", pa.int64()), ("t", pa.string())]), lambda wide: {"n": 1, "t": wide}, ["x.n", "x.t"]),
        (pa.map_(pa.string(), pa.string()), lambda wide: [("k", wide)], ["x.key_value.key", "x.key_value.value"]),
        (
            pa.list_(pa.struct([("s", pa.struct([("t", pa.string())])), ("l", pa.list_(pa.string(), 2))])),
            lambda wide: [{"s": {"t": "a"}, "l": ["b", wide]}, None],
            ["x.list.element.s.t", "x.list.element.l.list.element"],
        ),
    ],
)
def test_very_wide_values_within_nested_ones_are_written_as_they_are(tmp_path, kind, value, paths):
    schema = pa.schema([("id", pa.string()), ("x", kind)])
    wide = "x" * (WIDE_BYTES + 1)
    writer = ParquetWriter(schema, tmp_path / "part.parquet")
    rows = pa.record_batch([["a" * 100, "b", "c"], [value("b"), value(wide), None]], schema)
    for index in range(3):
        writer.write(rows.slice(index, 1))
    assert writer.finish()[0] == 3
    with pq.ParquetFile(tmp_path / "part.parquet") as file:
        assert file.read().to_pylist() == rows.to_pylist()
        group = file.metadata.row_group(file.metadata.num_row_groups - 1)
        columns = {group.column(index).path_in_schema: group.column(index) for index in range(group.num_columns)}
    assert list(columns) == ["id", *paths]
    *others, last = columns.values()
    assert (last.compression, last.has_dictionary_page) == ("UNCOMPRESSED", False)
    assert {each.compression for each in others} == {"SNAPPY"}


def test_a_file_that_is_given_up_behind_a_change_of_writers_is_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_writer, "ROW_GROUP_ROWS", 1)
    writer = ParquetWriter(SCHEMA, tmp_path / "part.parquet")
    for blob in (b"a", bytes(WIDE_BYTES + 1)):
        writer.write(pa.record_batch([[1], [blob]], SCHEMA))
    writer.abort()
    assert not list(tmp_path.iterdir())


def test_many_batches_of_a_row_are_kept_as_few(tmp_path):
    writer = ParquetWriter(SCHEMA, tmp_path / "part.parquet")
    rows = [(index, b"x" * (20_000 if index % 500 == 0 else index % 7)) for index in range(3000)]
    for row in rows:
        writer.write(pa.record_batch([[value] for value in row], SCHEMA))
    assert len(writer._held) < 500
    assert writer.finish()[0] == len(rows)
    with pq.ParquetFile(tmp_path / "part.parquet") as file:
        assert [tuple(row.values()) for row in file.read().to_pylist()] == rows


def test_values_of_an_extension_type_are_written_as_such(tmp_path):
    rows = pa.record_batch({"id": pa.array([bytes(16), b"0123456789abcdef", None], pa.uuid()), "n": [1, 2, 3]})
    writer = ParquetWriter(rows.schema, tmp_path / "part.parquet")
    writer.write(rows)
    assert writer.finish()[0] == 3
    assert pq.read_table(tmp_path / "part.parquet").to_pylist() == rows.to_pylist()


def test_seconds_that_are_no_milliseconds_are_an_error_with_column_and_value(tmp_path):
    batch = pa.record_batch({"when": pa.array([None, 0, 2**62], pa.timestamp("s"))})
    writer = ParquetWriter(batch.schema, tmp_path / "part.parquet")
    writer.write(batch)
    with pytest.raises(DataError, match=r"'when' is timestamp.s.: .* 4611686018427387904 are too many seconds"):
        writer.finish()
    writer.abort()
