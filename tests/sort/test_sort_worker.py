"""Sorting and spilling beside filling: the second half of the memory, its thread, its errors."""

import resource
import threading
import time

import pytest

from engine.errors import DiskFullError, SpillError, TaskCancelledError
from engine.graph.sort_key import SortKey
from engine.iomanager.spill_space import SpillSpace
from engine.sort.external_sorter import ExternalSorter
from tests.sort.sort_oracle import make_table, oracle, same

KEYS = (SortKey("key"),)
#: as few pages as are divided
HALVES = 128


def sort_threads():
    return [thread for thread in threading.enumerate() if thread.name == "drey-sort"]


@pytest.mark.parametrize("rows", [300, 4000, 6000, 15_000])
@pytest.mark.parametrize("distinct", [3, None])
def test_two_halves_sort_like_one_memory_and_stay_stable(workshop, rows, distinct):
    table = make_table("int64", rows, distinct=distinct)
    with workshop.operator(HALVES) as (pool, space):
        sorter = ExternalSorter(table.schema, KEYS, pool, space)
        for batch in table.to_batches(max_chunksize=170):
            sorter.add_batch(batch)
        sorter.finish()
        assert sort_threads() == []
        found = [row for batch in sorter.batches() for row in batch.to_pylist()]
        assert (sorter.run_count > 0) == (rows > 6000)
        sorter.close()
    assert same(found, oracle(table, KEYS))


def test_sorting_and_spilling_overlap_with_a_slow_reader(workshop):
    table = make_table("string", 40_000)
    # it waits for the first spill, which begins when both halves are full, and for the last one; in the quietest of
    # some runs, for on a loaded machine a thread is kept waiting by others
    assert any(waited_share(workshop, table) < 0.7 for _ in range(20))


def waited_share(workshop, table):
    """Return how much of the time of the background's work a slow reader waited for it."""
    with workshop.operator(HALVES) as (pool, space):
        sorter = ExternalSorter(table.schema, KEYS, pool, space)
        for batch in table.to_batches(max_chunksize=500):
            sorter.add_batch(batch)
            time.sleep(0.002)  # it waits for its own input
        sorter.finish()
        assert sorter.run_count > 8
        share = sorter.waited_ns / sorter.background_ns
        sorter.close()
        return share


@pytest.mark.parametrize("bytes_before", [0, 50_000])
def test_a_failure_in_the_background_is_raised_and_leaves_nothing(workshop, monkeypatch, bytes_before):
    table = make_table("int64", 20_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with workshop.operator(HALVES) as (pool, space):

        def open_first(*arguments):
            if bytes_before == 0 or workshop.files():
                raise DiskFullError("no room")
            return SpillSpace.open_extent(space, *arguments)

        monkeypatch.setattr(space, "open_extent", open_first)
        sorter = ExternalSorter(table.schema, KEYS, pool, space)
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(bytes_before, 1), limits[1]))
        try:
            with pytest.raises(DiskFullError, match="no room"):
                for batch in table.to_batches(max_chunksize=100):
                    sorter.add_batch(batch)
                sorter.finish()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        sorter.close()
        assert sort_threads() == []
        assert pool.pages_used == 0
        assert workshop.files() == []


def test_a_cancelled_space_ends_the_background_too(workshop):
    table = make_table("int64", 20_000)
    batches = table.to_batches(max_chunksize=100)
    with workshop.operator(HALVES) as (pool, space):
        sorter = ExternalSorter(table.schema, KEYS, pool, space)
        with pytest.raises((TaskCancelledError, SpillError)):
            for index, batch in enumerate(batches):
                if index == 10:
                    space.cancel()
                sorter.add_batch(batch)
            sorter.finish()
        sorter.close()
        assert sort_threads() == []
        assert pool.pages_used == 0


def test_closing_while_the_background_works_joins_it(workshop):
    table = make_table("string", 15_000)
    batches = table.to_batches(max_chunksize=1500)
    for count in range(len(batches) + 1):
        with workshop.operator(HALVES) as (pool, space):
            sorter = ExternalSorter(table.schema, KEYS, pool, space)
            for batch in batches[:count]:
                sorter.add_batch(batch)
            sorter.close()
            assert sort_threads() == []
            assert pool.pages_used == 0


def test_six_pages_have_no_second_half_and_no_thread(workshop):
    table = make_table("int64", 2000)
    with workshop.operator(6) as (pool, space):
        sorter = ExternalSorter(table.schema, KEYS, pool, space)
        for batch in table.to_batches(max_chunksize=100):
            sorter.add_batch(batch)
            assert sort_threads() == []
        sorter.finish()
        assert sorter.background_ns == 0
        sorter.close()
