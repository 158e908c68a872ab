"""Very many small files are read at once, each; what is wrong with one is said as of any other."""

import contextlib
import datetime
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.errors import DataError
from engine.parquet import reader as parquet_reader
from engine.parquet.reader import ParquetReader
from engine.parquet.small_files import FILES_MIN, SMALL_BYTES_MAX, small_file
from engine.parquet.source import parquet_source


def table_of(index):
    return pa.table(
        {
            "n": pa.array([index, None, -index], pa.int32()),
            "s": pa.array(["a", f"b{index}", None]).dictionary_encode(),
            "at": pa.array([datetime.datetime(2024, 1, 1), None, datetime.datetime(1500, 1, 1)], pa.timestamp("us")),
            "d": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal(index)], pa.decimal128(9, 2)),
            "list": [[index], [], None],
        }
    )


@pytest.fixture
def paths(tmp_path):
    found = [tmp_path / f"{index:02d}.parquet" for index in range(FILES_MIN)]
    for index, path in enumerate(found):
        pq.write_table(table_of(index), path, row_group_size=2, use_deprecated_int96_timestamps=index == 5)
    return found


@pytest.fixture
def opened(monkeypatch):
    """The files that are opened as larger ones are."""
    seen = []
    really = parquet_reader.OpenFile
    monkeypatch.setattr(parquet_reader, "OpenFile", lambda path, *others: seen.append(path) or really(path, *others))
    return seen


def rows_of(spec):
    with contextlib.closing(ParquetReader(spec, spec.splits)) as reader:
        table = pa.Table.from_batches(list(reader))
        assert reader.bytes_read == sum(split.size_bytes for split in spec.splits)
    return table


def test_many_small_files_have_the_rows_and_types_that_they_have_one_by_one(paths, opened):
    spec, _, schema = parquet_source(paths)
    found = rows_of(spec)
    assert opened == []
    assert found.schema == schema
    apart = [rows_of(parquet_source(path)[0]) for path in paths]
    assert opened != []
    assert found.to_pylist() == pa.concat_tables(apart).to_pylist()


def test_files_whose_types_differ_have_the_wider_one(paths, opened):
    pq.write_table(table_of(3).set_column(0, "n", pa.array([1, 2, 3], pa.int64())), paths[3])
    spec, _, schema = parquet_source(paths)
    assert schema.field("n").type == pa.int64()
    found = rows_of(spec)
    assert opened == []
    assert found.column("n").to_pylist()[9:12] == [1, 2, 3]
    assert found.schema == schema


def test_few_files_and_large_ones_are_read_as_ever(paths, opened, tmp_path):
    rows_of(parquet_source(paths[1:])[0])
    assert len(opened) == FILES_MIN - 1
    # a few bytes in the file, but many rows, or wide ones
    many, wide = tmp_path / "many.parquet", tmp_path / "wide.parquet"
    pq.write_table(pa.table({"a": [1] * 100_000}), many)
    pq.write_table(pa.table({"a": ["x" * 50_000] * 1000}), wide)
    assert max(many.stat().st_size, wide.stat().st_size) < SMALL_BYTES_MAX
    assert small_file(str(many), [0], ["a"]) is None
    assert small_file(str(wide), [0], ["a"]) is None
    large = tmp_path / "large.parquet"
    pq.write_table(pa.table({"a": range(100_000)}), large, compression="none")
    assert small_file(str(large), [0], ["a"]) is None


def test_a_damaged_file_among_many_is_named(paths):
    spec, _, _ = parquet_source(paths)
    data = bytearray(paths[7].read_bytes())
    data[4:40] = b"\xff" * 36
    paths[7].write_bytes(data)
    with pytest.raises(DataError, match=r"07.parquet, row groups 0 to 1: "):
        rows_of(spec)
