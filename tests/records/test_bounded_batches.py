"""Small batches are put together: the same rows in the same order."""

import pyarrow as pa
import pytest

from engine.records.bounded_batches import BYTES_MIN, HELD_MAX, ROWS_MIN, SmallBatches, put_together


def batches_of(sizes, width=1):
    start = 0
    for size in sizes:
        columns = [pa.array(range(start, start + size), pa.int64()), pa.array(["x" * width] * size, pa.string())]
        yield pa.record_batch(columns, ["n", "text"])
        start += size


@pytest.mark.parametrize(
    "sizes",
    [[], [1], [1] * 5000, [0, 3, 0], [ROWS_MIN, 1, ROWS_MIN - 1, 1, ROWS_MIN + 1], [1, 5000, 2, 2, 5000], [700] * 10],
)
def test_rows_and_their_order_are_the_same(sizes):
    found = list(put_together(batches_of(sizes)))
    assert [row for batch in found for row in batch.column(0).to_pylist()] == list(range(sum(sizes)))
    assert len(found) <= 13 + 2 * sum(size >= ROWS_MIN for size in sizes) + sum(sizes) // ROWS_MIN


def test_a_batch_of_wide_rows_is_handed_on_as_it_is():
    given = list(batches_of([1, 1, 1], BYTES_MIN))
    assert [id(batch) for batch in put_together(iter(given))] == [id(batch) for batch in given]


def test_who_wants_a_few_rows_does_not_wait_for_many():
    given = batches_of([1] * 100)
    taken = put_together(given)
    assert sum(next(taken).num_rows for _ in range(3)) <= 10
    assert next(given).column(0).to_pylist()[0] <= 10


def test_few_batches_are_kept_however_many_come():
    small = SmallBatches()
    given = [small.add(batch) for batch in batches_of([1] * (ROWS_MIN - 1))]
    assert not any(given)
    assert len(small.held) < HELD_MAX
    assert [batch.num_rows for batch in small.rest()] == [ROWS_MIN - 1]
    assert small.rest() == []
