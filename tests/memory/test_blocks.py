"""Blocks of batches: reused, bounded, counted, and given back from any thread."""

import gc
import threading

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.memory.blocks import (
    block_bytes,
    block_bytes_peak,
    drop_spare_blocks,
    keep_spare_blocks,
    spare_block_bytes,
)
from engine.records.kept_rows import kept_rows

MB = 1 << 20
KEPT = 4 * MB


@pytest.fixture(autouse=True)
def _nothing_spare():
    gc.collect()  # batches of other tests
    drop_spare_blocks()
    yield
    keep_spare_blocks(KEPT)
    drop_spare_blocks()


def half_of(megabytes):
    """Return every other row of a column of so many megabytes twice: one block of its own."""
    values = pa.array(range(2 * megabytes * MB // 8), pa.int64())
    return kept_rows(pa.record_batch({"k": values}), pc.equal(pc.bit_wise_and(values, 1), 0))


def test_a_block_that_was_given_back_is_taken_next():
    before = block_bytes()
    batch = half_of(1)
    held = block_bytes() - before
    assert MB <= held <= 1.3 * MB
    assert block_bytes_peak() >= block_bytes()
    del batch
    assert (block_bytes(), spare_block_bytes()) == (before, held)
    batch = half_of(1)
    assert spare_block_bytes() == 0
    assert batch.column(0).to_pylist()[:3] == [0, 2, 4]


def test_a_smaller_batch_takes_a_block_of_up_to_half_as_much_again():
    del_later = half_of(1)
    del del_later
    kept = spare_block_bytes()
    smaller = kept_rows(pa.record_batch({"k": pa.array(range(70_000), pa.int64())}), pa.array([True, False] * 35_000))
    assert spare_block_bytes() == kept, "a block four times as large is not for it"
    assert smaller.num_rows == 35_000


def test_no_more_is_kept_than_the_process_may():
    batches = [half_of(1) for _ in range(8)]
    del batches
    assert 3 * MB <= spare_block_bytes() <= KEPT
    keep_spare_blocks(2 * MB)
    assert 0 < spare_block_bytes() <= 2 * MB
    keep_spare_blocks(0)
    assert spare_block_bytes() == 0
    del_later = half_of(1)
    del del_later
    assert spare_block_bytes() == 0


def test_what_is_kept_can_be_dropped():
    del_later = half_of(2)
    del del_later
    assert spare_block_bytes() > 0
    drop_spare_blocks()
    assert spare_block_bytes() == 0


def test_a_column_keeps_its_block_and_any_thread_may_let_it_go():
    before = block_bytes()
    columns = [half_of(1).column(0) for _ in range(3)]
    gc.collect()
    assert block_bytes() - before >= 3 * MB
    thread = threading.Thread(target=columns.clear)
    thread.start()
    thread.join()
    assert block_bytes() == before


def test_threads_that_take_and_give_have_blocks_of_their_own():
    wrong = []

    def work(number):
        for round_number in range(40):
            values = pa.array([number * 1000 + round_number] * 40_000, pa.int64())
            batch = kept_rows(pa.record_batch({"k": values}), pa.array([True, True, False, True] * 10_000))
            if pc.min_max(batch.column(0)).as_py() != dict.fromkeys(("min", "max"), number * 1000 + round_number):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert spare_block_bytes() <= KEPT
