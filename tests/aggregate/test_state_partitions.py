"""States past the table: parted by their keys in pages and files, and given back in order."""

import random
import threading

import pyarrow as pa
import pytest

from engine.accumulators.state_combiner import StateCombiner
from engine.aggregate import state_partitions
from engine.aggregate.state_partitions import StatePartitions
from engine.errors import DataError, MemoryBudgetError
from engine.partitions.partition_files import PartitionFiles
from engine.records.row_codec import RowCodec
from tests.aggregate.group_oracle import make_table, oracle, rows_of, single, two_phases
from tests.partitions.parted_rows import make_batch, read_all

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.string())])
PARTITIONS = 8


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


class Threads:
    """Three threads as a task has them."""

    count = 3

    def __init__(self):
        self.runs = 0

    def run(self, work):
        self.runs += 1
        errors = []

        def guarded():
            try:
                work()
            except DataError as error:
                errors.append(error)

        threads = [threading.Thread(target=guarded) for _ in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]


@pytest.fixture
def three_threads(monkeypatch):
    """Threads that merge however few rows wait."""
    monkeypatch.setattr(state_partitions, "THREADED_PAGES", 1)
    return Threads()


def merging_partitions(batch, pool, space, files, page_limit, threads=None):
    partitions = StatePartitions(_Layout(batch.schema, [0]), pool, space, files, PARTITIONS, 0, page_limit)
    combiners = [StateCombiner(batch.schema, 1, [0, 9, 10], ["sum overflows"] * 3) for _ in range(Threads.count)]
    return partitions, partitions.merge_with(combiners, threads)


@pytest.mark.parametrize("is_threaded", [False, True])
@pytest.mark.parametrize("page_limit", [8 * PARTITIONS, 100, 400])
@pytest.mark.parametrize("distinct", [50, 3000, 10**9])
def test_rows_are_merged_as_they_come(workshop, three_threads, page_limit, distinct, is_threaded):
    """Into their groups, in their order, what has no room goes to files, once."""
    batch, threads = make_states(distinct), three_threads if is_threaded else None
    with workshop.operator(page_limit + 8) as (pool, space):
        codec, files = RowCodec(batch.schema), PartitionFiles(space, 4096)
        partitions, is_merging = merging_partitions(batch, pool, space, files, page_limit, threads)
        assert is_merging
        for start in range(0, ROWS, 500):
            partitions.add(batch.slice(start, 500))
            assert pool.pages_used <= page_limit + (Threads.count if is_threaded else 0)
        kept = partitions.finish()
        assert is_threaded == (three_threads.runs > 0)
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


@pytest.mark.parametrize("is_threaded", [False, True])
def test_a_sum_that_overflows_where_rows_are_merged_leaves_nothing(workshop, three_threads, is_threaded):
    batch, threads = make_states(50), three_threads if is_threaded else None
    batch = batch.set_column(1, "sum", pa.array([2**62] * ROWS))
    with workshop.operator(500) as (pool, space):
        partitions, _ = merging_partitions(batch, pool, space, PartitionFiles(space, 4096), 400, threads)
        with pytest.raises(DataError, match="sum overflows"):
            partitions.add(batch)
        partitions.close()
        assert pool.pages_used == 0
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
