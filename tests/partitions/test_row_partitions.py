"""Rows parted by their keys in pages and files, and given back in order."""

import pyarrow as pa
import pytest

from engine.partitions.partition_files import PartitionFiles
from engine.partitions.row_partitions import RowPartitions
from engine.records.row_codec import RowCodec
from tests.partitions.parted_rows import SCHEMA, in_order_by_key, make_batch, read_all

PARTITIONS = 8


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
