"""Rows taken from pages before they are decoded: from begin to end, and sound ones only."""

import pyarrow as pa
import pytest

from engine.errors import CorruptBlockError
from engine.exchange.page_reader import PageReader
from engine.partitions.partition_router import PartitionRouter
from engine.partitions.row_partitions import RowPartitions
from engine.records.row_codec import RowCodec


def test_it_takes_nothing_before_it_begins_and_after_its_end(workshop):
    schema = pa.schema([("key", pa.int64()), ("value", pa.int64())])
    codec = RowCodec(schema)
    page = codec.to_rows(pa.record_batch([pa.array([1, 2, None]), pa.array([4, 5, 6])], schema=schema))
    with workshop.operator(16) as (pool, _):
        router = PartitionRouter(codec)
        parts = RowPartitions(codec, [0], pool, _NoFiles(), 4, 0, 8)
        reader = PageReader(schema, router=router)
        reader.add_row(page)
        assert (router.row_count, reader.staged_rows) == (0, 3)
        router.begin(parts)
        reader.add_row(page)
        assert (router.row_count, router.size_bytes, reader.staged_rows) == (3, len(page), 3)
        router.end()
        reader.add_row(page)
        assert (router.row_count, reader.staged_rows) == (3, 6)
        parts.close()


def test_damaged_rows_are_refused(workshop):
    schema = pa.schema([("key", pa.int64()), ("text", pa.string())])
    codec = RowCodec(schema)
    page = bytearray(codec.to_rows(pa.record_batch([pa.array([7]), pa.array(["a text"])], schema=schema)))
    page[16:20] = (1 << 20).to_bytes(4, "little")
    with workshop.operator(16) as (pool, _):
        router = PartitionRouter(codec)
        parts = RowPartitions(codec, [0], pool, _NoFiles(), 4, 0, 8)
        router.begin(parts)
        with pytest.raises(CorruptBlockError):
            PageReader(schema, router=router).add_row(page)
        assert parts.pages_held == 0
        parts.close()


class _NoFiles:
    def has(self, partition):
        return False
