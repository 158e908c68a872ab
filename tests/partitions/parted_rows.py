"""Rows to be parted by their keys, and what partitions hold of them."""

import random

import pyarrow as pa

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.string())])


def make_batch(rows, sizes=(0, 3, 40), seed=1):
    rng = random.Random(seed)
    keys = [None if rng.random() < 0.1 else rng.randrange(50) for _ in range(rows)]
    values = [f"{index}:" + "x" * rng.choice(sizes) for index in range(rows)]
    return pa.record_batch([pa.array(keys, pa.int64()), pa.array(values)], schema=SCHEMA)


def in_order_by_key(rows):
    found = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return found


def read_all(sources, files, codec):
    """Rows of kept partitions and of files."""
    rows = []
    for source in sources:
        for batch in source:
            rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        source.delete()
    for file in files.finish():
        with file.reader() as reader:
            for block in reader:
                rows += zip(*(column.to_pylist() for column in codec.from_rows(block).columns), strict=True)
        file.delete()
    return rows
