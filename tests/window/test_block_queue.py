"""Rows that wait: in memory within the budget, on disk beyond it, gone when nobody needs them."""

import pyarrow as pa

from tests.window.queues import blocks_of, queue_of

TEXTS = pa.array([None if number % 5 == 0 else f"text {number}" for number in range(400)])


def rows_of(queue):
    return [value for block in blocks_of(queue) for value in block.batch.column(0).to_pylist()]


def test_rows_come_back_from_memory_and_from_disk_in_any_order(workshop):
    for budget in (1 << 20, 500, 0):
        with workshop.operator(4) as (_, space):
            queue = queue_of(space, TEXTS, [1] * 400, [10] * 40, budget)
            assert rows_of(queue) == TEXTS.to_pylist()
            assert rows_of(queue) == TEXTS.to_pylist()
            assert queue.block_at(205).batch.column(0).to_pylist() == TEXTS[200:210].to_pylist()
            assert queue.block_at(3).levels_array().to_pylist() == [1] * 10
            assert (space.spilled_bytes > 0) == (budget < 1 << 20)
            queue.close()


def test_files_go_with_the_last_of_their_rows(workshop):
    with workshop.operator(4) as (_, space):
        queue = queue_of(space, TEXTS, [1] * 400, [10] * 40, 0)
        rows_of(queue)
        assert len(workshop.files()) == 3
        queue.drop(205)
        assert len(workshop.files()) == 2
        assert queue.block_at(205).start == 200
        queue.drop(400)
        assert workshop.files() == []
        assert queue.next_block(400) is None
        queue.close()
        queue.close()


def test_what_is_dropped_makes_room_for_rows_that_come(workshop):
    with workshop.operator(4) as (_, space):
        queue = queue_of(space, TEXTS, [1] * 400, [10] * 40, 2_000)
        spilled = space.raw_bytes
        queue.drop(400)
        queue.add(pa.record_batch({"x": TEXTS.slice(0, 10)}), pa.array([1] * 10, pa.uint8()))
        queue.shrink()
        assert queue.block_at(400).batch.column(0).to_pylist() == TEXTS[:10].to_pylist()
        assert space.raw_bytes == spilled
        queue.close()
