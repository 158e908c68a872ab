"""Rows of every type, sorted in plain Python and by an ExternalSorter."""

import datetime
import decimal
import math
import random

import pyarrow as pa

from engine.errors import DiskFullError
from engine.sort.external_sorter import ExternalSorter

TYPES = {
    "bool": (pa.bool_(), lambda r: r.random() < 0.5),
    "int8": (pa.int8(), lambda r: r.randrange(-128, 128)),
    "int64": (pa.int64(), lambda r: r.choice([r.randrange(-5, 5), r.randrange(-(2**63), 2**63)])),
    "uint64": (pa.uint64(), lambda r: r.randrange(2**64)),
    "double": (pa.float64(), lambda r: r.choice([r.gauss(0, 1e9), 0.0, -0.0, math.nan, math.inf, -math.inf])),
    "float": (pa.float32(), lambda r: r.choice([float(r.randrange(-100, 100)), math.nan])),
    "decimal": (pa.decimal128(20, 2), lambda r: decimal.Decimal(r.randrange(-(10**19), 10**19)) / 100),
    "date": (pa.date32(), lambda r: datetime.date(2020, 1, 1) + datetime.timedelta(r.randrange(-9999, 9999))),
    "timestamp": (pa.timestamp("us"), lambda r: datetime.datetime(2020, 1, 1) + datetime.timedelta(r.gauss(0, 900))),
    "string": (pa.string(), lambda r: "".join(r.choice("aäz") for _ in range(r.choice([0, 1, 5, 9, 30])))),
    "prefixed": (pa.string(), lambda r: "the same beginning " + str(r.randrange(50))),
    "binary": (pa.large_binary(), lambda r: r.randbytes(r.randrange(12))),
    "fixed": (pa.binary(5), lambda r: r.randbytes(5)),
}
#: types that only the test of all directions takes beside those
MORE_TYPES = {
    "int16": (pa.int16(), lambda r: r.randrange(-(2**15), 2**15)),
    "int32": (pa.int32(), lambda r: r.randrange(-(2**31), 2**31)),
    "uint8": (pa.uint8(), lambda r: r.randrange(256)),
    "uint16": (pa.uint16(), lambda r: r.randrange(2**16)),
    "uint32": (pa.uint32(), lambda r: r.randrange(2**32)),
    "float zeros": (pa.float32(), lambda r: r.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 0.5, -0.5])),
    "decimal256": (pa.decimal256(50, 3), lambda r: decimal.Decimal(r.randrange(-(10**40), 10**40)) / 1000),
    "time": (pa.time32("s"), lambda r: datetime.time(r.randrange(24), r.randrange(60), r.randrange(60))),
    "zone": (
        pa.timestamp("ms", "UTC"),
        lambda r: datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(r.randrange(-9999, 9999)),
    ),
    "large string": (pa.large_string(), lambda r: "".join(r.choice("aé") for _ in range(r.randrange(12)))),
}
MEMORIES = {"fits": 400, "half": 10, "minimum": 6}


def order_of(value, key):
    """A comparison key: nulls absolute, NaN the largest number."""
    if value is None:
        return (1 if key.nulls_last else -1, 0)
    return (0, Reversed(value) if key.descending else Plain(value))


class Plain:
    """Orders values as the engine does."""

    def __init__(self, value):
        if isinstance(value, float):
            value = (1, 0.0) if math.isnan(value) else (0, value + 0.0)
        elif isinstance(value, str):
            value = value.encode()
        self.value = value

    def __lt__(self, other):
        return self.value < other.value

    def __eq__(self, other):
        return self.value == other.value

    __hash__ = None


class Reversed(Plain):
    """The other way round."""

    def __lt__(self, other):
        return other.value < self.value


def oracle(table, keys, limit=None):
    rows = table.to_pylist()
    rows.sort(key=lambda row: tuple(order_of(row[key.column], key) for key in keys))
    return rows if limit is None else rows[:limit]


def same(left, right):
    return len(left) == len(right) and repr(left) == repr(right)


def sort_table(table, keys, pool, space, batch_rows=100, **options):
    sorter = ExternalSorter(table.schema, keys, pool, space, **options)
    try:
        for batch in table.to_batches(max_chunksize=batch_rows):
            sorter.add_batch(batch)
        sorter.finish()
        batches = list(sorter.batches())
        assert sorter.rows_in == table.num_rows
        return pa.Table.from_batches(batches, table.schema), sorter
    finally:
        sorter.close()


def make_table(type_name, count, null_share=0.1, seed=0, distinct=None):
    rng = random.Random(seed)
    data_type, make = (TYPES | MORE_TYPES)[type_name]
    pool = [make(rng) for _ in range(distinct or count)]
    keys = [None if rng.random() < null_share else (rng.choice(pool) if distinct else pool[i]) for i in range(count)]
    schema = pa.schema([("key", data_type), ("number", pa.int64()), ("text", pa.string())])
    return pa.table([keys, list(range(count)), [f"row {i} " * (i % 4) for i in range(count)]], schema=schema)


class FailingSpace:
    """A space that has no room after some files."""

    def __init__(self, space, files):
        self.space = space
        self.left = files

    def writer(self, label, block_size):
        self.left -= 1
        if self.left < 0:
            raise DiskFullError("no room")
        return self.space.writer(label, block_size=block_size)
