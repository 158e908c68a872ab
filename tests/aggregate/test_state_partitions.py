"""States past the table: parted by their keys in pages and files, and given back in order."""

import random

import pyarrow as pa
import pytest

from engine.aggregate.partition_files import PartitionFiles
from engine.aggregate.row_partitions import RowPartitions
from engine.aggregate.state_combiner import StateCombiner
from engine.aggregate.state_partitions import StatePartitions
from engine.errors import DataError, MemoryBudgetError
from engine.records.row_codec import RowCodec
from tests.aggregate.group_oracle import make_table, oracle, rows_of, single, two_phases

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.string())])
PARTITIONS = 8


def make_batch(rows, sizes=(0, 3, 40), seed=1):
    rng = random.Random(seed)
    keys = [None if rng.random() < 0.1 else rng.randrange(50) for _ in range(rows)]
    values = [f"{index}:" + "x" * rng.choice(sizes) for index in range(rows)]
    return pa.record_batch([pa.array(keys, pa.int64()), pa.array(values)], schema=SCHEMA)


def in_order_by_key(rows):
    found = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return found


def read_all(sources, files, codec):
    """Rows of kept partitions and of files."""
    rows = []
    for source in sources:
        for batch in source:
            rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        source.delete()
    for file in files.finish():
        with file.reader() as reader:
            for block in reader:
                rows += zip(*(column.to_pylist() for column in codec.from_rows(block).columns), strict=True)
        file.delete()
    return rows


@pytest.mark.parametrize("page_limit", [PARTITIONS, 20, 200])
@pytest.mark.parametrize("sizes", [(0, 3, 40), (10, 3000, 9000)])
def test_every_row_comes_back_in_the_order_of_its_key(workshop, page_limit, sizes):
    batch = make_batch(3000 if max(sizes) < 100 else 200, sizes)
    with workshop.operator(page_limit + 8) as (pool, space):
        codec, files = RowCodec(SCHEMA), PartitionFiles(space, 4096)
        parts = RowPartitions(codec, [0], pool, files, PARTITIONS, 0, page_limit)
        position = 0
        while position < batch.num_rows:
            position = parts.add(batch.slice(0, position + 700), position)
            assert parts.pages_held <= page_limit
            if position < batch.num_rows and position % 700:
                parts.spill_largest()
        kept = parts.finish()
        assert parts.pages_held == 0
        assert len(kept) == PARTITIONS or page_limit < 200 or max(sizes) > 4096
        expected = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        assert in_order_by_key(read_all(kept, files, codec)) == in_order_by_key(expected)
        parts.close()


def test_rows_parted_by_any_column_are_lent_where_they_lie_and_come_from_files_as_they_are(workshop):
    schema = pa.schema([("value", pa.string()), ("key", pa.int64())])
    codec, batch = RowCodec(schema), make_batch(3000).select(["value", "key"])
    with workshop.operator(64) as (pool, space):
        files = PartitionFiles(space, 4096)
        parts = RowPartitions(codec, [1], pool, files, PARTITIONS, 0, 40)
        assert parts.add(batch, 0) == batch.num_rows
        lent = []
        for kept in parts.finish():
            lent.append(kept.row_pages().decoded())
            kept.delete()
        parts.close()
        keys = [set(each.column("key").to_pylist()) for each in lent]
        assert len(keys) > 1
        assert sum(map(len, keys)) == len(set.union(*keys))
        rows = sorted(pa.Table.from_batches(lent).to_pylist(), key=str)
        assert rows == sorted(batch.to_pylist(), key=str)

        writer = files.writer(0)
        for begin in range(0, batch.num_rows, 10):
            writer.write_bytes(codec.to_rows(batch.slice(begin, 10)))
        [file] = files.finish()
        whole = RowPartitions(codec, [1], pool, files, 1, 0, 40)
        with file.reader() as reader:
            whole.add_file(reader)
        kept = whole.take(0)
        assert kept.row_pages().decoded().to_pylist() == batch.to_pylist()
        kept.delete()
        whole.close()
        file.delete()


def test_what_was_taken_and_deleted_gives_its_pages_back(workshop):
    with workshop.operator(40) as (pool, space):
        parts = RowPartitions(RowCodec(SCHEMA), [0], pool, PartitionFiles(space, 4096), PARTITIONS, 0, 32)
        batch = make_batch(1000)
        assert parts.add(batch, 0) == 1000
        kept = [kept for kept in map(parts.take, range(PARTITIONS)) if kept is not None]
        assert sum(rows.row_count for rows in kept) == 1000
        assert pool.pages_used == sum(rows.page_count for rows in kept) > 0
        next(iter(kept[0]))
        for rows in kept:
            rows.delete()
        assert pool.pages_used == 0
        parts.close()


def test_without_a_page_of_the_pool_it_says_so(workshop):
    with workshop.operator(4) as (pool, space):
        files = PartitionFiles(space, 4096)
        parts = RowPartitions(RowCodec(SCHEMA), [0], pool, files, PARTITIONS, 0, PARTITIONS)
        batch = make_batch(1000)
        position = parts.add(batch, 0)
        while parts.spill_largest():
            position = parts.add(batch, position)
        assert position < 1000
        parts.close()
        files.discard()


@pytest.mark.parametrize("phases", [single, two_phases])
@pytest.mark.parametrize("distinct", [300, 20000])
def test_groups_that_do_not_repeat_within_reach_go_past_the_table(workshop, monkeypatch, phases, distinct):
    began = []
    monkeypatch.setattr(StatePartitions, "__init__", _counting(StatePartitions.__init__, began))
    table, calls = make_table("int64", "int64", 9000, distinct, null_share=0.05)
    result, operator = phases(workshop, 66, table, ("key",), calls)[:2]
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert bool(began) == (operator.spilled_bytes > 0) == (distinct == 20000)


def test_what_repeats_later_is_spilled_once(workshop):
    """New groups only, until partitions have begun; then the same few again and again."""
    keys = [*range(3000), *(index % 40 for index in range(6000))]
    table, calls = make_table("int64", "int64", len(keys), 10)
    table = table.set_column(0, "key", pa.array(keys, pa.int64()))
    result, operator = single(workshop, 66, table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)
    row_bytes = RowCodec(operator._layout.state_schema).fixed_size
    assert 0 < operator.spilled_bytes <= len(keys) * row_bytes


ROWS = 12000


def make_states(distinct, seed=2):
    """States of one key: a sum, the first and the last value of int64, which tell of an order."""
    rng = random.Random(seed)
    columns = [[rng.randrange(distinct) for _ in range(ROWS)], *([*range(ROWS)] for _ in range(3))]
    return pa.record_batch([pa.array(column, pa.int64()) for column in columns], ["key", "sum", "first", "last"])


def sum_first_last(rows):
    groups = {}
    for key, total, first, last in rows:
        before = groups.get(key)
        groups[key] = (total, first, last) if before is None else (before[0] + total, before[1], last)
    return groups


def merging_partitions(batch, pool, space, files, page_limit):
    partitions = StatePartitions(_Layout(batch.schema, [0]), pool, space, files, PARTITIONS, 0, page_limit)
    combiner = StateCombiner(batch.schema, 1, [0, 9, 10], ["sum overflows"] * 3)
    return partitions, partitions.merge_with(combiner)


@pytest.mark.parametrize("page_limit", [8 * PARTITIONS, 100, 400])
@pytest.mark.parametrize("distinct", [50, 3000, 10**9])
def test_rows_are_merged_as_they_come(workshop, page_limit, distinct):
    """Into their groups, in their order; what has no room goes to files, once."""
    batch = make_states(distinct)
    with workshop.operator(page_limit + 8) as (pool, space):
        codec, files = RowCodec(batch.schema), PartitionFiles(space, 4096)
        partitions, is_merging = merging_partitions(batch, pool, space, files, page_limit)
        assert is_merging
        for start in range(0, ROWS, 500):
            partitions.add(batch.slice(start, 500))
            assert pool.pages_used <= page_limit
        kept = partitions.finish()
        kept_groups = sum(rows.row_count for rows in kept)
        assert all(rows.is_merged for rows in kept)
        assert kept_groups < ROWS or page_limit == 400
        assert files.any == (page_limit < 400 and distinct == 10**9)
        assert files.raw_bytes <= codec.fixed_size * (ROWS - kept_groups)
        rows = read_all(kept, files, codec)
        assert len(rows) < ROWS or distinct == 10**9
        assert sum_first_last(rows) == sum_first_last(
            zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )
        assert pool.pages_used == 0


@pytest.mark.parametrize("page_limit", [8 * PARTITIONS - 1, 400])
def test_few_pages_or_other_rows_are_not_merged(workshop, page_limit):
    batch = make_states(50).slice(0, 10)
    if page_limit == 400:
        batch = batch.set_column(0, "key", batch.column(0).cast(pa.float64()))
    with workshop.operator(500) as (pool, space):
        partitions, is_merging = merging_partitions(batch, pool, space, PartitionFiles(space, 4096), page_limit)
        assert not is_merging
        partitions.close()


def test_a_sum_that_overflows_where_rows_are_merged_leaves_nothing(workshop):
    batch = make_states(50)
    batch = batch.set_column(1, "sum", pa.array([2**62] * ROWS))
    with workshop.operator(500) as (pool, space):
        partitions, _ = merging_partitions(batch, pool, space, PartitionFiles(space, 4096), 400)
        with pytest.raises(DataError, match="sum overflows"):
            partitions.add(batch)
        partitions.close()
        assert pool.pages_used == 0


@pytest.mark.parametrize("phases", [single, two_phases])
@pytest.mark.parametrize("pages", [200, 300, 2000])
@pytest.mark.parametrize("distinct", [400, 8000])
def test_groups_of_rows_that_were_merged_as_they_came(workshop, monkeypatch, phases, pages, distinct):
    monkeypatch.setattr("engine.aggregate.grouping_phase.CACHED_GROUPS", 64)
    merged = []
    monkeypatch.setattr(StatePartitions, "_merge_partitions", _counting(StatePartitions._merge_partitions, merged))
    table, calls = make_table("int64", "int64", 9000, distinct, null_share=0.05)
    result = phases(workshop, pages, table, ("key",), calls)[0]
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert merged or phases is single or pages == 2000


def test_no_page_for_states_is_an_error_of_memory(workshop):
    with workshop.operator(4) as (pool, space):
        files = PartitionFiles(space, 4096)
        layout = _Layout(SCHEMA, [0])
        partitions = StatePartitions(layout, pool, space, files, PARTITIONS, 0, PARTITIONS)
        with pytest.raises(MemoryBudgetError, match="no page"):
            partitions.add(make_batch(1000))
        partitions.close()
        files.discard()


class _Layout:
    def __init__(self, state_schema, key_columns):
        self.state_schema = state_schema
        self.key_columns = key_columns


def _counting(function, calls):
    def counted(*arguments, **options):
        calls.append(arguments)
        return function(*arguments, **options)

    return counted
