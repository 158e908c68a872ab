"""A batch that was made here is read from where it was made, as long as it lives, as Arrow would export it."""

import gc
import random

import pyarrow as pa
import pytest

from engine.memory.blocks import block_bytes
from engine.records.arrow_batch import batch_bytes
from engine.records.kept_rows import kept_columns, kept_rows
from engine.records.row_mask import Mask
from engine.records.side_by_side import SideBySide

#: more than there are notes
BATCHES = 1200


def batch_of(seed, rows=50):
    chosen = random.Random(seed)
    numbers = [None if chosen.random() < 0.1 else chosen.randrange(1000) for _ in range(rows)]
    texts = [None if chosen.random() < 0.1 else "text " * chosen.randrange(5) for _ in range(rows)]
    coded = pa.array(texts).dictionary_encode()
    nothing = pa.nulls(rows)
    return pa.record_batch({"n": pa.array(numbers, pa.int64()), "t": texts, "c": coded, "nothing": nothing})


def foreign(batch):
    """Return the same rows as Arrow has made them."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(stream.getvalue()).read_next_batch()


def halves(batch):
    return kept_rows(batch, pa.array([row % 2 == 0 for row in range(batch.num_rows)], pa.bool_()))


def test_batches_are_read_as_arrow_would_export_them():
    made = [halves(batch_of(seed)) for seed in range(BATCHES)]
    for batch in made:
        again = halves(batch)
        assert again.equals(halves(foreign(batch)))
        assert batch_bytes(again) == batch_bytes(halves(foreign(batch)))
        again.validate(full=True)


def test_batches_that_have_gone_are_not_taken_for_those_that_came_in_their_place():
    for seed in range(20 * BATCHES):
        batch = halves(batch_of(seed % 7, rows=20 + seed % 5))
        assert halves(batch).num_rows == (batch.num_rows + 1) // 2
        assert halves(batch).equals(batch.take(pa.array(range(0, batch.num_rows, 2))))
        del batch
    gc.collect()


def test_columns_by_reference_keep_what_they_lie_in():
    side = SideBySide(["t", "n"])
    for seed in range(BATCHES):
        found = side.of([halves(batch_of(seed))])
        found = SideBySide(["n"]).of([found])
        found = halves(found)
        assert found.column("n").to_pylist() == batch_of(seed).column("n").to_pylist()[::4]


@pytest.mark.parametrize("rows", [0, 1])
def test_a_slice_is_opened_as_it_is(rows):
    batch = halves(batch_of(3))
    assert halves(batch.slice(7, rows)).equals(batch.slice(7, rows))
    assert halves(batch.slice(7)).equals(batch.slice(7).take(pa.array(range(0, batch.num_rows - 7, 2))))


def test_batches_without_values_in_memory():
    batch = pa.record_batch({"nothing": pa.nulls(10)})
    made = halves(batch)
    assert halves(made).num_rows == 3
    assert halves(made.select([])).num_rows == 3


@pytest.mark.parametrize("rows", [10, 5000, 100_000])
def test_a_batch_that_kernels_make_for_kernels_becomes_arrow_s_where_it_is_asked(rows):
    batch, held = batch_of(3, rows), block_bytes()
    flags = [row % 3 != 0 for row in range(rows)]
    wanted = batch.filter(pa.array(flags)).select([2, 1, 0])
    kept = kept_columns(batch, Mask(pa.array(flags)), [2, 1, 0], wanted.schema)
    assert (kept.num_rows, kept.num_columns, kept.schema) == (wanted.num_rows, 3, wanted.schema)
    assert batch_bytes(kept) == batch_bytes(wanted)
    assert halves(kept).equals(halves(wanted))  # from where it lies
    assert SideBySide(["n", "c"]).of([kept, kept]).equals(wanted.select(["n", "c"]))
    assert kept.column("t").equals(wanted.column("t"))  # Arrow's from here on
    assert kept.slice(1).equals(wanted.slice(1))
    texts = kept.column("c")
    del kept
    assert texts.equals(wanted.column("c"))
    del texts
    gc.collect()
    assert block_bytes() == held


def test_a_batch_for_kernels_that_is_not_asked_for_goes_without_arrow():
    held = block_bytes()
    batch = batch_of(4, 5000)
    mask, schema = Mask(pa.array([row % 2 == 0 for row in range(5000)])), batch.select([0]).schema
    for _ in range(10):
        kept_columns(batch, mask, [0], schema)
    assert block_bytes() == held
