"""Ranges of sorted runs on their way to another process: pages in order, and the runs that are made of them there."""

import contextlib

import pyarrow as pa
import pytest

from engine.errors import CorruptBlockError
from engine.graph.sort_key import SortKey
from engine.memory.segment import MemorySegment
from engine.records.outside_values import set_outside_bytes
from engine.records.row_codec import RowCodec
from engine.sort.external_sorter import ExternalSorter
from engine.sort.run_transfer import RunReceiver
from engine.sort.sorted_runs import RangePages
from tests.sort.sort_oracle import make_table, same
from tests.sort.test_sorted_runs import bounds_of, read_range, take_runs

PAGE = 4096


def pages_of(runs, lower=None, upper=None, page_bytes=PAGE):
    pages, page = RangePages(runs, lower, upper), bytearray(page_bytes)
    while used := pages.fill(page):
        if used > 0:
            yield bytes(page[:used])
        else:
            row = bytearray(-used)
            assert pages.fill(row) == -used
            yield bytes(row)
    pages.close()
    assert pages.fill(page) == 0


def receive(receiver, pages, producer=0):
    for page in pages:
        if len(page) > PAGE:
            receiver.add_row(page)
        else:
            segment = MemorySegment(PAGE)
            segment.put_bytes(0, page)
            receiver.add_page(segment, len(page))
    receiver.end_run(producer)


@pytest.mark.parametrize("type_name", ["int64", "string", "decimal"])
@pytest.mark.parametrize("force_spill", [False, True])
@pytest.mark.parametrize("fractions", [(None, None), (0.2, 0.7), (None, 0.5), (0.5, 0.5)])
def test_what_was_sent_merges_as_what_is_here(workshop, type_name, force_spill, fractions):
    table = make_table(type_name, 700)
    keys = (SortKey("key", descending=True), SortKey("number"))
    bounds = [None if fraction is None else bounds_of(table, keys, [fraction])[0] for fraction in fractions]
    with (
        workshop.operator(300) as (pool, space),
        workshop.operator(300) as (other_pool, other_space),
        workshop.operator(6) as (merge_pool, merge_space),
    ):
        senders = [
            take_runs(table.slice(0, 400), keys, pool, space, force_spill=force_spill),
            take_runs(table.slice(400), keys, other_pool, other_space, force_spill=force_spill),
        ]
        receiver = RunReceiver(table.schema, keys, merge_space, 4096)
        for runs in senders:
            receive(receiver, pages_of(runs, *bounds))
        received = receiver.take_runs()
        expected = read_range(senders, merge_pool, *bounds)
        assert receiver.rows == len(expected)
        assert (len(expected) == 700) == (fractions == (None, None))
        assert same(read_range([received], merge_pool, *bounds), expected)
        for runs in (*senders, received):
            runs.release()


def test_equal_keys_come_in_the_order_of_their_producers_wherever_their_runs_are(workshop):
    table = pa.table({"key": [number % 3 for number in range(600)], "number": list(range(600))})
    keys = (SortKey("key"),)
    with contextlib.ExitStack() as stack:
        merge_pool, merge_space = stack.enter_context(workshop.operator(6))
        # Producers 1 and 2 have their runs here, and 2 has many; 0 and 3 send theirs.
        producers = []
        for producer in range(4):
            pool, space = stack.enter_context(workshop.operator(300))
            part = table.slice(150 * producer, 150)
            producers.append(take_runs(part, keys, pool, space, force_spill=producer == 2))
            producers[-1].produced_by(producer)
        receiver = RunReceiver(table.schema, keys, merge_space, 4096)
        for producer in (0, 3):
            receive(receiver, pages_of(producers[producer]), producer)
        received = receiver.take_runs()
        expected = sorted(table.to_pylist(), key=lambda row: row["key"])
        assert read_range([*producers[1:3], received], merge_pool) == expected
        producers[1].spill()
        assert read_range([received, producers[2], producers[1]], merge_pool) == expected
        for runs in (*producers, received):
            runs.release()


def test_a_row_larger_than_a_page_is_asked_for_on_its_own(workshop):
    texts = ["a", "b" * 30_000, "c", "d" * 9000]
    table = pa.table({"key": pa.array([3, 1, 2, 0], pa.int64()), "text": texts})
    with workshop.operator(60) as (pool, space), workshop.operator(20) as (merge_pool, merge_space):
        runs = take_runs(table, (SortKey("key"),), pool, space)
        receiver = RunReceiver(table.schema, (SortKey("key"),), merge_space, 4096)
        sizes = [len(page) for page in pages_of(runs)]
        assert sum(size > PAGE for size in sizes) == 2
        receive(receiver, pages_of(runs))
        received = receiver.take_runs()
        found = [row["text"] for row in read_range([received], merge_pool)]
        assert found == [texts[3], texts[1], texts[2], texts[0]]
        runs.release()
        received.release()


@pytest.fixture
def outside_from_5000_bytes():
    set_outside_bytes(5000)
    yield
    set_outside_bytes()


@pytest.mark.parametrize("force_spill", [False, True])
def test_values_outside_travel_inside_and_lie_outside_again(workshop, outside_from_5000_bytes, force_spill):
    texts = ["b" * 9000 + str(index) if index % 3 else f"t{index}" for index in range(30)]
    table = pa.table({"text": texts, "key": pa.array(range(30), pa.int64())})
    keys = (SortKey("text"),)
    with workshop.operator(60) as (pool, space), workshop.operator(20) as (merge_pool, merge_space):
        runs = take_runs(table, keys, pool, space, force_spill=force_spill)
        # what is here are references: nothing is near a page
        assert runs.row_bytes < 30 * 300
        sent = list(pages_of(runs))
        assert sum(map(len, sent)) > 20 * 9000
        assert pa.Table.from_batches([RowCodec(table.schema).from_rows(page) for page in sent]).equals(
            table.sort_by("text")
        )
        bound = bounds_of(table, keys, [0.5])[0]
        receiver = RunReceiver(table.schema, keys, merge_space, 4096)
        receive(receiver, pages_of(runs, None, bound))
        receive(receiver, pages_of(runs, bound, None))
        received = receiver.take_runs()
        assert received.row_bytes < 30 * 300
        assert [row["text"] for row in read_range([received], merge_pool)] == sorted(texts)
        # what was received can be sent on
        assert b"".join(pages_of(received)) == b"".join(sent)
        runs.release()
        received.release()
        for each in (space, merge_space):  # values stay as long as these
            each.close()


def test_rows_with_wide_values_that_come_to_a_sort_go_outside(workshop, outside_from_5000_bytes):
    texts = ["b" * 9000 + str(index) for index in range(20)]
    table = pa.table({"text": texts, "key": pa.array(range(20), pa.int64())})
    rows = RowCodec(table.schema).to_rows(table.combine_chunks().to_batches()[0])
    with workshop.operator(20) as (pool, space):
        sorter = ExternalSorter(table.schema, (SortKey("text", descending=True),), pool, space)
        sorter.add_rows(rows)
        sorter.finish()
        assert sorter.run_count == 0, "twenty references are no more than a page or two"
        found = [row["text"] for batch in sorter.batches() for row in batch.to_pylist()]
        assert found == sorted(texts, reverse=True)
        sorter.close()
        space.close()


def test_bytes_that_are_no_rows_are_refused(workshop):
    with workshop.operator(6) as (_, space):
        receiver = RunReceiver(pa.schema([("key", pa.int64())]), (SortKey("key"),), space, 4096)
        with pytest.raises(CorruptBlockError, match="whole rows"):
            receiver.add_row(b"\xff" * 40)
        receiver.take_runs().release()


def test_nothing_received_is_a_merge_of_nothing(workshop):
    with workshop.operator(6) as (pool, space):
        receiver = RunReceiver(pa.schema([("key", pa.int64())]), (SortKey("key"),), space, 4096)
        receiver.end_run()
        received = receiver.take_runs()
        assert read_range([received], pool) == []
        received.release()
