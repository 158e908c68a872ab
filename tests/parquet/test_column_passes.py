"""Row groups whose columns do not fit side by side: the same rows, with less memory."""

import contextlib
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import CorruptBlockError, DataError, DiskFullError, TaskCancelledError
from engine.iomanager.spill_space import SpillSpace
from engine.memory import budget
from engine.memory.budget import LEAST_BYTES, Budget, Kind, Role
from engine.parquet import column_passes, scan_memory
from engine.parquet import writer as parquet_writer
from engine.parquet.column_passes import read_in_passes
from engine.parquet.pages import BUFFER_MAX, pages_of, parts
from engine.parquet.reader import ParquetReader
from engine.parquet.source import parquet_source

ROWS = 3000


def budget_of(arrow_bytes):
    made = Budget()
    made.set_limit(Kind.ARROW, arrow_bytes)
    return made


def table(rows=ROWS):
    return pa.table(
        {
            "n": pa.array([None if i % 7 == 0 else i for i in range(rows)], pa.int64()),
            "text": [f"{i:09d}" * 20 for i in range(rows)],
            "few": pa.array([f"{i % 5}" for i in range(rows)]).dictionary_encode(),
            "list": [[i, None, i + 1][: i % 4] for i in range(rows)],
            "map": pa.array([[(f"k{i}", i / 3)] for i in range(rows)], pa.map_(pa.string(), pa.float64())),
            "struct": [{"a": i, "b": [{"c": f"{i}" * 30}]} for i in range(rows)],
            **{f"c{k}": [f"{k}-{i}" * 8 for i in range(rows)] for k in range(20)},
        }
    )


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_rows_are_the_same_when_columns_are_read_in_parts(compression, version, tmp_path, new_space, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(
        table(), path, row_group_size=1700, compression=compression, data_page_version=version, data_page_size=20_000
    )
    spec, _, schema = parquet_source(path)
    expected = pa.Table.from_batches(ParquetReader(spec, spec.splits), schema)
    monkeypatch.setattr(scan_memory, "LEAST_BYTES", 0)
    share = budget_of(2 << 20)
    monkeypatch.setattr(budget, "LEAST_BYTES", 100_000)
    monkeypatch.setattr(scan_memory, "process_budget", share)
    calls = []

    def counted(columns, sizes, limit):
        calls.append(len(parts(columns, sizes, limit)))
        return parts(columns, sizes, limit)

    monkeypatch.setattr(column_passes, "parts", counted)
    reader = ParquetReader(spec, spec.splits, new_space)
    with share.reserve(Kind.ARROW, 100_000):
        assert pa.Table.from_batches(reader, schema) == expected
    assert calls
    assert min(calls) > 3
    reader.close()
    assert share.held(Kind.ARROW) == 0


def test_nothing_of_a_batch_is_kept_while_the_next_one_is_read(new_space):
    before = pa.total_allocated_bytes()
    kept = []

    def read(columns, rows):
        for index in range(5):
            kept.append(pa.total_allocated_bytes() - before)
            yield pa.record_batch([pa.array([bytes([index]) * (4 << 20)])], ["x"])

    batches = read_in_passes(read, {"x": 4 << 20}, 1, new_space, budget_of(1 << 30))
    assert [batch.column(0)[0].as_py()[:1] for batch in batches] == [bytes([index]) for index in range(5)]
    assert len(kept) == 5
    assert max(kept) < 1 << 20


def test_what_is_reserved_is_given_back_when_a_reader_is_closed_in_the_middle(tmp_path, new_space, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(table(), path)
    spec, _, _ = parquet_source(path)
    share = budget_of(1 << 30)
    monkeypatch.setattr(scan_memory, "LEAST_BYTES", 0)
    monkeypatch.setattr(scan_memory, "process_budget", share)
    reader = ParquetReader(spec, spec.splits, new_space)
    batches = iter(reader)
    next(batches)
    assert share.held(Kind.ARROW) > 0
    reader.close()
    assert share.held(Kind.ARROW) == 0


def test_what_is_reserved_is_given_back_before_the_rows_that_a_reader_had_are_worked_on(
    tmp_path, new_space, monkeypatch
):
    path = tmp_path / "t.parquet"
    pq.write_table(table(), path, row_group_size=100)
    spec, _, _ = parquet_source(path)
    share = budget_of(1 << 30)
    monkeypatch.setattr(scan_memory, "LEAST_BYTES", 0)
    monkeypatch.setattr(scan_memory, "process_budget", share)
    with contextlib.closing(ParquetReader(spec, spec.splits, new_space)) as reader:
        held = [share.held(Kind.ARROW) for _ in reader]
        assert min(held) > 0
        assert share.held(Kind.ARROW) == 0


def test_memory_of_pages_is_not_kept_from_pass_to_pass(tmp_path, new_space, monkeypatch):
    path = tmp_path / "t.parquet"
    names = [f"c{index:02d}" for index in range(16)]
    columns = {name: pa.array(range(index, 60_000 + index)) for index, name in enumerate(names)}
    pq.write_table(pa.table(columns), path, row_group_size=30_000, use_dictionary=False)
    spec, _, _ = parquet_source(path)
    monkeypatch.setattr(scan_memory, "process_budget", budget_of(2 << 20))
    monkeypatch.setattr(scan_memory, "LEAST_BYTES", 0)
    reader = ParquetReader(spec, spec.splits, new_space)
    kept, rows = [], 0
    with scan_memory.process_budget.reserve(Kind.ARROW, 1):
        for batch in reader:
            kept.append(len(reader._scans._scan._file._readers))
            rows += batch.num_rows
    reader.close()
    assert rows == 60_000
    assert set(kept) == {0}


def test_held_bytes_are_a_page_and_three_times_the_dictionary(tmp_path):
    path = tmp_path / "t.parquet"
    rows = 100_000
    plain = pa.table({"a": [f"{i:012d}" for i in range(rows)], "d": [f"{i % 10_000:096d}" for i in range(rows)]})
    pq.write_table(plain, path, use_dictionary=["d"], data_page_size=100_000, dictionary_pagesize_limit=1 << 30)
    found = pages_of(str(path), pq.read_metadata(path), 0, ["a", "d"])
    sizes = {name: pages.held_bytes(BUFFER_MAX) for name, pages in found.items()}
    buffer = min(pq.read_metadata(path).row_group(0).column(0).total_compressed_size, BUFFER_MAX)
    assert 100_000 <= sizes["a"] - buffer <= 150_000
    assert 3 * 10_000 * 100 <= sizes["d"] <= 4 * 10_000 * 100 + BUFFER_MAX


def test_a_header_that_is_none_counts_as_a_page_of_the_whole_column(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": range(1000)}), path, use_dictionary=False)
    metadata = pq.read_metadata(path)
    damaged = bytearray(path.read_bytes())
    damaged[metadata.row_group(0).column(0).data_page_offset] = 0x99
    path.write_bytes(damaged)
    chunk = metadata.row_group(0).column(0)
    held = pages_of(str(path), metadata, 0, ["a"])["a"].held_bytes(BUFFER_MAX)
    assert held == chunk.total_uncompressed_size + min(chunk.total_compressed_size, BUFFER_MAX)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=20), st.integers(1, 150))
@settings(max_examples=60)
def test_parts_hold_every_column_once_in_order_and_stay_within_the_limit(sizes, limit):
    names = [f"c{index}" for index in range(len(sizes))]
    by_name = dict(zip(names, sizes, strict=True))
    divided = parts(names, by_name, limit)
    assert [name for part in divided for name in part] == names
    assert all(part for part in divided)
    assert all(len(part) == 1 or sum(by_name[name] for name in part) <= limit for part in divided)


def passes(read, rows, new_space):
    """Return batches whose columns a and b are read one after the other."""
    return read_in_passes(read, {"a": 2 * LEAST_BYTES, "b": 2 * LEAST_BYTES}, rows, new_space, budget_of(1 << 20))


def batches_of(rows, sizes):
    start = 0
    for size in sizes:
        yield pa.record_batch({"a": list(range(start, start + size))})
        start += size
    assert start == rows


@pytest.mark.parametrize("sizes", [(40, 40, 20), (100,), (1, 99), (39, 2, 59), (80, 20), ()])
def test_batches_of_any_sizes_are_put_together_with_those_of_other_parts(sizes, new_space):
    def read(columns, rows):
        if columns == ["a"]:
            return batches_of(sum(sizes), sizes)
        return (pa.record_batch({"b": list(range(s, min(s + rows, sum(sizes))))}) for s in range(0, sum(sizes), rows))

    joined = pa.Table.from_batches(passes(read, 40, new_space), pa.schema({"a": pa.int64(), "b": pa.int64()}))
    assert joined.column("a") == joined.column("b")
    assert joined.num_rows == sum(sizes)


def test_columns_of_different_lengths_are_damage(new_space):
    def read(columns, rows):
        return iter([pa.record_batch({columns[0]: range(rows)})] * (1 if columns == ["a"] else 2))

    with pytest.raises(pa.ArrowInvalid, match="same number of rows"):
        list(passes(read, 40, new_space))


def test_a_damaged_value_is_an_error(tmp_path, new_space):
    def read(columns, rows):
        return iter([pa.record_batch({columns[0]: range(rows)})] * 2)

    batches = passes(read, 1000, new_space)
    next(batches)
    (file,) = (tmp_path / "spill").rglob("*.spill")
    with file.open("r+b") as opened:
        opened.seek(-100, os.SEEK_END)
        opened.write(b"\xff")
    with pytest.raises(CorruptBlockError, match="damaged"):
        next(batches)


def test_a_cancelled_space_ends_the_passes(new_space):
    spaces = []

    def read(columns, rows):
        spaces[0].cancel()
        return iter([pa.record_batch({columns[0]: range(rows)})])

    def remembered():
        spaces.append(new_space())
        return spaces[0]

    with pytest.raises(TaskCancelledError):
        list(passes(read, 10, remembered))


def test_a_damaged_file_read_in_parts_is_an_error_of_the_data(tmp_path, new_space, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(table(), path, compression="none", write_page_checksum=True)
    spec, _, _ = parquet_source(path)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    path.write_bytes(damaged)
    monkeypatch.setattr(scan_memory, "LEAST_BYTES", 0)
    monkeypatch.setattr(scan_memory, "process_budget", budget_of(2 << 20))
    monkeypatch.setattr(column_passes, "parts", lambda columns, sizes, limit: [[name] for name in columns])
    with (
        scan_memory.process_budget.reserve(Kind.ARROW, 1),
        pytest.raises(DataError, match=r"t\.parquet, row groups 0 to 1"),
    ):
        list(ParquetReader(spec, spec.splits, new_space))


def test_a_full_disk_is_not_an_error_of_the_data(tmp_path, new_space, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(table(), path)
    spec, _, _ = parquet_source(path)
    monkeypatch.setattr(scan_memory, "LEAST_BYTES", 0)
    monkeypatch.setattr(scan_memory, "process_budget", budget_of(2 << 20))

    def full(self, value):
        raise DiskFullError(f"no room for {len(value)} bytes")

    monkeypatch.setattr(SpillSpace, "write_value", full)
    with scan_memory.process_budget.reserve(Kind.ARROW, 1), pytest.raises(DiskFullError, match="no room"):
        list(ParquetReader(spec, spec.splits, new_space))


def test_a_small_row_group_reserves_no_more_than_it_has(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [f"{i:09d}" for i in range(10_000)]}), path, compression="none")
    spec, _, _ = parquet_source(path)
    share = budget_of(64 << 20)
    monkeypatch.setattr(scan_memory, "process_budget", share)
    reader = ParquetReader(spec, spec.splits)
    next(iter(reader))
    assert 0 < share.held(Kind.ARROW) <= 2 * pq.read_metadata(path).row_group(0).total_byte_size
    reader.close()


@pytest.mark.thorough
def test_a_writer_with_little_memory_writes_small_row_groups_and_dictionaries(tmp_path, monkeypatch):
    share = budget_of(8 << 20)
    monkeypatch.setattr(parquet_writer, "process_budget", share)
    rows = pa.table({"list": [[index, index + 1] for index in range(400_000)]})
    for count, group_bytes in ((1, 2 << 20), (4, 1 << 20)):
        others = [share.reserve(Kind.ARROW, role=Role.WRITER) for _ in range(count - 1)]
        path = tmp_path / f"{count}.parquet"
        writer = parquet_writer.ParquetWriter(rows.schema, path)
        for batch in rows.to_batches(max_chunksize=8192):
            writer.write(batch)
        writer.finish()
        for other in others:
            other.close()
        metadata = pq.read_metadata(path)
        assert abs(metadata.num_row_groups - rows.nbytes / group_bytes) <= 1.5
        for group in range(metadata.num_row_groups):
            chunk = metadata.row_group(group).column(0)
            assert chunk.data_page_offset - chunk.dictionary_page_offset <= 2 * (64 << 10)
        assert pq.read_table(path).equals(rows)


def test_pages_of_wide_values_are_about_a_megabyte(tmp_path):
    schema = pa.schema([("text", pa.string())])
    path = tmp_path / "wide.parquet"
    writer = parquet_writer.ParquetWriter(schema, path)
    for start in range(0, 100, 10):
        texts = [f"{index:06d}" * (20 << 10) for index in range(start, start + 10)]
        writer.write(pa.record_batch([pa.array(texts)], schema))
    writer.finish()
    metadata = pq.read_metadata(path)
    held = pages_of(str(path), metadata, 0, ["text"])["text"].held_bytes(BUFFER_MAX)
    assert held < 4 << 20 < metadata.row_group(0).total_byte_size
