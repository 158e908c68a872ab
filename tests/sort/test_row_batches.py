"""Rows of a sort that are not decoded: the same as its batches, kept as long as the sort is open."""

import random

import pyarrow as pa
import pytest

from engine.graph.sort_key import SortKey
from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_identity import SpillIdentity
from engine.memory.manager import MemoryManager
from engine.sort.external_sorter import ExternalSorter


def table_of(rows, wide_every=0):
    chance = random.Random(rows)
    keys = [None if index % 13 == 5 else chance.randrange(rows) for index in range(rows)]
    texts = ["w" * 40_000 if wide_every and index % wide_every == 0 else f"t{index}" for index in range(rows)]
    return pa.table({"k": pa.array(keys, pa.int64()), "text": texts, "n": range(rows)})


@pytest.mark.parametrize(("pages", "force_spill"), [(2000, False), (6, False), (2000, True)])
@pytest.mark.parametrize("wide_every", [0, 50])
@pytest.mark.parametrize(("batch_rows", "batch_bytes"), [(1, 1 << 20), (37, 1 << 20), (8192, 3000), (8192, 1 << 20)])
def test_they_are_the_rows_in_order_also_when_all_are_kept(
    tmp_path, pages, force_spill, wide_every, batch_rows, batch_bytes
):
    table = table_of(400, wide_every)
    with (
        MemoryManager(pages * 4096, 4096) as memory,
        IOManager([str(tmp_path)]) as io,
        io.space(SpillIdentity("ab" * 16, 0, 0, 0)) as space,
        memory.pool("sort", pages) as pool,
    ):
        keys = (SortKey("k"), SortKey("n"))
        sorter = ExternalSorter(table.schema, keys, pool, space, force_spill=force_spill)
        for batch in table.to_batches(max_chunksize=90):
            sorter.add_batch(batch)
        sorter.finish()
        # all of them at once: none lies where another one was
        kept = list(sorter.row_batches(batch_rows, batch_bytes))
        found = pa.Table.from_batches([rows.decoded() for rows in kept])
        assert all(0 < rows.num_rows <= batch_rows for rows in kept)
        assert all(rows.num_rows == 1 or rows.decoded().nbytes <= batch_bytes for rows in kept)
        sorter.close()
        assert pool.pages_used == 0
    expected = table.sort_by([("k", "ascending"), ("n", "ascending")])
    nulls = table.filter(table["k"].is_null())
    assert found.equals(pa.concat_tables([nulls, expected.slice(0, len(table) - len(nulls))]).cast(found.schema))


def test_they_come_after_finish_and_not_after_close(tmp_path):
    table = table_of(30)
    with (
        MemoryManager(64 * 4096, 4096) as memory,
        IOManager([str(tmp_path)]) as io,
        io.space(SpillIdentity("ab" * 16, 0, 0, 0)) as space,
        memory.pool("sort", 64) as pool,
    ):
        sorter = ExternalSorter(table.schema, (SortKey("k"),), pool, space)
        sorter.add_batch(table.combine_chunks().to_batches()[0])
        with pytest.raises(RuntimeError, match="after finish"):
            sorter.row_batches()
        sorter.finish()
        rows = sorter.row_batches(7)
        assert next(rows).num_rows == 7
        sorter.close()
        with pytest.raises(RuntimeError, match="closed"):
            next(rows)
