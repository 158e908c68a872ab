"""Rows in spill files: those of one part of the keys, and readers that take no page."""

import pyarrow as pa
import pytest

from engine.partitions.partition_files import PartitionFiles
from engine.partitions.spilled_rows import SpilledRows


@pytest.mark.parametrize("sizes", [(0, 3, 40), (10, 3000, 9000, 70_000)])
@pytest.mark.parametrize("parts", [1, 2, 7, 300])
def test_every_row_of_a_file_is_in_one_part_with_all_others_of_its_key(workshop, parts, sizes):
    schema = pa.schema([("key", pa.int64()), ("value", pa.string())])
    rows = 3000 if max(sizes) < 100 else 200
    keys = [index * 7 % 50 for index in range(rows)]
    batch = pa.record_batch([keys, [f"{n}:" + "x" * sizes[n % len(sizes)] for n in range(rows)]], schema=schema)
    with workshop.operator(40) as (pool, space):
        states, files = SpilledRows(schema, 1, pool), PartitionFiles(space, 4096)
        states.scatter(batch, files, 0, 4)
        found, part_of = [], {}
        for file in files.finish():
            for part in range(parts):
                read = [row for piece in states.read(file.reader(), 1, part, parts) for row in piece.to_pylist()]
                assert all(part_of.setdefault(row["key"], (file, part)) == (file, part) for row in read)
                found += read
            file.delete()
        states.close()
    by_key = [[row["value"] for row in found if row["key"] == key] for key in range(50)]
    assert by_key == [[row["value"] for row in batch.to_pylist() if row["key"] == key] for key in range(50)]


def test_rows_without_a_page_are_read_and_not_written(workshop):
    batch = pa.record_batch({"k": [1, 2, 3]})
    with workshop.operator(1) as (pool, space):
        writer, states = space.writer("states", block_size=4096), SpilledRows(batch.schema, 1, pool)
        states.write(batch, writer)
        states.close()
        file, reading = writer.finish(), SpilledRows(batch.schema, 1, None)
        assert pa.Table.from_batches(reading.read(file.reader())).to_pydict() == {"k": [1, 2, 3]}
        with pytest.raises(RuntimeError, match="without a page"):
            reading.write(batch, writer)
        reading.close()
        file.delete()
