"""The external sorter beyond its memory: what it writes and gives back, in every state and at every fault."""

import random

import pyarrow as pa
import pytest

from engine.errors import CorruptBlockError, DiskFullError, EngineError, SchemaError
from engine.graph.sort_key import SortKey
from engine.memory.segment import MemorySegment
from engine.records.row_codec import RowCodec
from engine.sort.external_sorter import ExternalSorter
from engine.sort.merge_plan import MERGE_BYTES_MIN
from engine.sort.merged_batches import MergedBatches
from tests.sort.sort_oracle import FailingSpace, make_table, oracle, same, sort_table


def test_two_hundred_thousand_rows_sort_like_pyarrow_with_one_spill(workshop):
    rng = random.Random(7)
    table = pa.table(
        {
            "key": pa.array([rng.randrange(10**6) for _ in range(200_000)], pa.int64()),
            "payload": pa.array([f"{i:040}" for i in range(200_000)]),
        }
    )
    with workshop.operator(64, 32768) as (pool, space):
        result, sorter = sort_table(table, (SortKey("key"),), pool, space, 8192)
        row_bytes = 200_000 * len(RowCodec(table.schema).to_rows(table.slice(0, 1).to_batches()[0]))
        assert sorter.run_count > 4
        assert row_bytes <= sorter.spilled_bytes <= 2 * row_bytes
        assert space.spilled_bytes <= 2 * row_bytes
    assert result.equals(table.take(pa.compute.sort_indices(table, [("key", "ascending")])))


def test_spilled_bytes_are_those_of_the_input_when_one_merge_is_enough(workshop):
    table = make_table("int64", 5000)
    row_bytes = sum(len(RowCodec(table.schema).to_rows(batch)) for batch in table.to_batches())
    with workshop.operator(32) as (pool, space):
        _, sorter = sort_table(table, (SortKey("key"),), pool, space)
    assert sorter.run_count > 1
    assert sorter.spilled_bytes == row_bytes


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("pages", "most"), [(6, {1: 1.25, 2: 1.65}), (8, {1: 1, 2: 1.5}), (16, {1: 1, 2: 1.05}), (64, {1: 1, 2: 1})]
)
@pytest.mark.parametrize("readers", [1, 2])
def test_what_is_written_is_less_than_twice_the_input_however_few_the_pages(workshop, pages, most, readers):
    """Some hundred times the memory of the operator; what is on disk is less than twice the Arrow batches too."""
    rng = random.Random(pages)
    count = 16_000
    keys = [rng.randrange(2**40) for _ in range(count)]
    table = pa.table({"key": keys, "text": [rng.randbytes(900) for _ in range(count)]})
    row_bytes = sum(len(RowCodec(table.schema).to_rows(batch)) for batch in table.to_batches())
    with workshop.operator(pages) as (pool, space), workshop.operator(6) as (merge_pool, _):
        sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space, reader_count=readers)
        for batch in table.to_batches(max_chunksize=500):
            sorter.add_batch(batch)
        runs = sorter.take_runs()
        files = len(workshop.files())
        merged = MergedBatches([runs], merge_pool)
        found = pa.Table.from_batches(merged.batches(), table.schema)
        held = workshop.io.buffer_bytes_out
        merged.close()
        assert 0.9 * row_bytes < runs.spilled_bytes <= most[readers] * row_bytes
        assert space.spilled_bytes <= 2 * table.nbytes
        assert held <= MERGE_BYTES_MIN // readers
        assert files <= 3
        assert workshop.io.buffer_bytes_out == 0
        runs.release()
    assert found.equals(table.take(pa.compute.sort_indices(table, [("key", "ascending")])))


@pytest.mark.parametrize("sizes", [[5000], [20_000], [60_000], [100, 5000, 60_000, 9000, 60_000, 10, 30_000]])
def test_rows_larger_than_a_page_or_than_all_pages_are_sorted(workshop, sizes):
    rng = random.Random(3)
    texts = [rng.choice("abc") + "x" * rng.choice(sizes) for _ in range(40)] + [f"s{i}" for i in range(200)]
    rng.shuffle(texts)
    table = pa.table({"key": texts, "number": list(range(len(texts)))})
    with workshop.operator(6) as (pool, space):
        result, _ = sort_table(table, (SortKey("key"),), pool, space, 20)
    assert same(result.to_pylist(), oracle(table, (SortKey("key"),)))


def test_many_rows_larger_than_the_memory_are_merged_in_bounded_memory(workshop):
    rng = random.Random(8)
    table = pa.table(
        {"key": [rng.randrange(1000) for _ in range(60)], "blob": [rng.randbytes(200_000) for _ in range(60)]}
    )
    with workshop.operator(8) as (pool, space):
        sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
        for batch in table.to_batches(max_chunksize=7):
            sorter.add_batch(batch)
        sorter.finish()
        batches = sorter.batches()
        found = [next(batches)]
        held = workshop.io.buffer_bytes_out
        found.extend(batches)
        assert 60 < sorter.run_count < 80
        assert 0 < held <= 1.5 * MERGE_BYTES_MIN
        assert sorter.spilled_bytes <= 2 * table.nbytes
        sorter.close()
    assert same(pa.Table.from_batches(found).to_pylist(), oracle(table, (SortKey("key"),)))


def test_a_batch_is_bounded_by_rows_and_by_bytes(workshop):
    table = make_table("int64", 3000)
    for pages in (200, 10):
        with workshop.operator(pages) as (pool, space):
            sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
            for batch in table.to_batches(max_chunksize=500):
                sorter.add_batch(batch)
            sorter.finish()
            batches = list(sorter.batches(max_rows=50, max_bytes=2048))
            sorter.close()
        codec = RowCodec(table.schema)
        assert sum(batch.num_rows for batch in batches) == 3000
        assert max(batch.num_rows for batch in batches) <= 50
        assert max(len(codec.to_rows(batch)) for batch in batches) <= 2048


@pytest.mark.parametrize("pages", [100, 6])
def test_pages_of_rows_and_batches_mix(workshop, pages):
    table = make_table("string", 400)
    codec = RowCodec(table.schema)
    batches = table.to_batches(max_chunksize=20)
    with workshop.operator(pages) as (pool, space):
        sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
        for index, batch in enumerate(batches):
            rows = codec.to_rows(batch)
            if index % 3 == 0:
                sorter.add_batch(batch)
            elif index % 3 == 1:
                sorter.add_rows(rows)
            else:
                segment = MemorySegment(len(rows) + 64)
                segment.put_bytes(0, rows)
                sorter.add_page(segment, len(rows))
        sorter.add_rows(b"")
        sorter.finish()
        result = pa.Table.from_batches(sorter.batches(), table.schema)
        assert sorter.rows_in == 400
        sorter.close()
    assert same(result.to_pylist(), oracle(table, (SortKey("key"),)))


def test_a_page_whose_sizes_do_not_add_up_is_refused(workshop):
    table = make_table("int64", 3)
    rows = RowCodec(table.schema).to_rows(table.to_batches()[0])
    with workshop.operator(6) as (pool, space):
        sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
        with pytest.raises(CorruptBlockError, match="do not add up"):
            sorter.add_rows(rows[:-8])
        with pytest.raises(ValueError, match="used"):
            sorter.add_page(MemorySegment(64), 65)
        sorter.close()


def test_an_empty_input_gives_no_batch(workshop):
    table = make_table("int64", 0)
    for force_spill in (False, True):
        with workshop.operator(6) as (pool, space):
            result, sorter = sort_table(table, (SortKey("key"),), pool, space, force_spill=force_spill)
        assert result.num_rows == 0
        assert sorter.run_count == 0


def test_closing_early_returns_pages_and_files_in_every_state(workshop):
    table = make_table("int64", 2000)
    for steps in range(4):
        with workshop.operator(8) as (pool, space):
            sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
            if steps > 0:
                for batch in table.to_batches(max_chunksize=100):
                    sorter.add_batch(batch)
                assert workshop.files() != []
            if steps > 1:
                sorter.finish()
            if steps > 2:
                next(sorter.batches(max_rows=10))
            sorter.close()
            sorter.close()
            assert pool.pages_used == 0
            assert workshop.files() == []


def test_calls_in_the_wrong_order_are_refused(workshop):
    table = make_table("int64", 10)
    with workshop.operator(6) as (pool, space):
        sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
        with pytest.raises(RuntimeError, match="after finish"):
            next(sorter.batches())
        sorter.finish()
        with pytest.raises(RuntimeError, match="finished"):
            sorter.add_batch(table.to_batches()[0])
        sorter.close()
        with pytest.raises(RuntimeError, match="closed"):
            sorter.finish()


def test_unknown_columns_nested_keys_and_other_schemas_are_refused(workshop):
    schema = pa.schema([("key", pa.int64()), ("nested", pa.list_(pa.int64()))])
    with workshop.operator(6) as (pool, space):
        for column in ("missing", "nested"):
            with pytest.raises(SchemaError):
                ExternalSorter(schema, (SortKey(column),), pool, space)
        sorter = ExternalSorter(schema, (SortKey("key"),), pool, space)
        with pytest.raises(EngineError):
            sorter.add_batch(pa.record_batch({"key": ["text"]}))
        sorter.close()


def test_a_failing_disk_is_an_error_and_leaves_nothing(workshop, monkeypatch):
    table = make_table("int64", 2000)
    with workshop.operator(8) as (pool, space):
        sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, FailingSpace(space, 0))
        with pytest.raises(DiskFullError):
            for batch in table.to_batches(max_chunksize=100):
                sorter.add_batch(batch)
        sorter.close()
        assert pool.pages_used == 0
