"""ParquetReader: pages that are large, and what a damaged file is told as."""

import contextlib

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.column_expressions.expressions import col
from engine.errors import DataError, MemoryBudgetError
from engine.memory.budget import Budget, Kind
from engine.parquet import scan_memory
from engine.parquet.pages import first_page
from engine.parquet.reader import ParquetReader
from engine.parquet.source import parquet_source


def test_no_flipped_bit_of_a_page_header_loses_rows(tmp_path):
    path = tmp_path / "t.parquet"
    rows = 1000
    pq.write_table(pa.table({"n": range(rows)}), path, use_dictionary=False, data_page_size=1000, write_batch_size=50)
    data = path.read_bytes()
    begin = first_page(pq.read_metadata(path).row_group(0).column(0))
    spec, _, _ = parquet_source(path)
    silent, refused = [], 0
    for position in range(begin, begin + 20):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            with pq.ParquetFile(path) as file, contextlib.suppress(pa.ArrowInvalid, OSError):
                silent.append(sum(batch.num_rows for batch in file.iter_batches(100)))
            reader = ParquetReader(spec, spec.splits)
            try:
                assert sum(batch.num_rows for batch in reader) == rows
            except DataError:
                refused += 1
            finally:
                reader.close()
    assert min(silent) < rows  # which Arrow alone would have said nothing of
    assert refused > 50


VALUES = [f"{index:07d}" * (10 << 10) for index in range(20)]


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
@pytest.mark.parametrize(
    "options",
    [
        {"use_dictionary": False, "data_page_size": 1 << 30},
        {"use_dictionary": False, "column_encoding": {"t": "DELTA_BYTE_ARRAY"}},
        {"use_dictionary": False, "column_encoding": {"t": "DELTA_LENGTH_BYTE_ARRAY"}, "data_page_version": "2.0"},
        {"use_dictionary": True, "data_page_version": "2.0"},
    ],
    ids=["plain", "delta", "lengths", "dictionary"],
)
def test_wide_values_of_every_encoding_and_codec_are_what_was_written(tmp_path, compression, options):
    path = tmp_path / "t.parquet"
    rows = pa.table({"n": range(20), "t": [None if index % 7 == 3 else text for index, text in enumerate(VALUES)]})
    pq.write_table(rows, path, compression=compression, **options)
    spec, _, schema = parquet_source(path)
    reader = ParquetReader(spec, spec.splits)
    assert pa.Table.from_batches(reader, schema) == rows
    reader.close()


@pytest.mark.parametrize("use_dictionary", [False, True])
@pytest.mark.parametrize("row_count", [1, 20])
def test_a_page_that_does_not_fit_is_an_error_that_says_what_to_do(tmp_path, monkeypatch, use_dictionary, row_count):
    path = tmp_path / "t.parquet"
    rows = pa.table({"n": range(row_count), "text": [20 * text for text in VALUES[:row_count]]})
    pq.write_table(rows, path, compression="none", use_dictionary=use_dictionary, data_page_size=1 << 30)
    spec, _, _ = parquet_source(path)
    budget = Budget()
    for kind in (Kind.ARROW, Kind.WORKER):
        budget.set_limit(kind, 1 << 19)
    monkeypatch.setattr(scan_memory, "process_budget", budget)
    reader = ParquetReader(spec, spec.splits)
    place = rf"file {path}, row group 0, column 'text': reading it takes \d+(\.\d)?mb"
    with pytest.raises(MemoryBudgetError, match=rf"{place}.* has 1mb .*raise taskmanager\.memory\.process\.size"):
        list(reader)
    reader.close()


def test_rows_that_have_numbers_of_wide_values_come_one_by_one(tmp_path):
    path = tmp_path / "t.parquet"
    texts = pa.array([text * 2 for text in VALUES[:2]])
    numbers = pa.array([index % 2 for index in range(2000)], pa.int32())
    rows = pa.table({"n": range(2000), "text": pa.DictionaryArray.from_arrays(numbers, texts)})
    pq.write_table(rows, path, store_schema=False)
    assert pq.read_metadata(path).row_group(0).total_byte_size < 4 << 20
    spec, _, _ = parquet_source(path)
    reader = ParquetReader(spec, spec.splits)
    count = 0
    for batch in reader:
        count += batch.num_rows
        assert batch.nbytes < 2 << 20
    assert count == 2000
    reader.close()


def test_splits_that_are_taken_one_by_one_may_be_others_than_a_reader_was_given(tmp_path):
    for name in "ab":
        table = pa.table({"n": range(100), "file": [name] * 100})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=10)
    spec, _, _ = parquet_source(tmp_path)
    spec = msgspec.structs.replace(spec, predicate=((col("n") < 15) | (col("n") >= 95)).expression)
    first, second = spec.splits[:10], spec.splits[10:]
    waiting = [*first, *second[::-1]]
    reader = ParquetReader(spec, first)
    reader.take_from(lambda: waiting.pop(0) if waiting else None)
    batches = iter(reader)
    rows = [(row["file"], row["n"]) for row in next(batches).to_pylist()]
    assert waiting  # which somebody else could take
    rows += [(row["file"], row["n"]) for batch in batches for row in batch.to_pylist()]
    assert sorted(rows) == [(name, n) for name in "ab" for n in (*range(15), *range(95, 100))]
    assert rows[-1][0] == "b"
    assert reader.pruned_groups == 14
    reader.close()
