"""What a join gives out by row: columns of every width, with and without nulls, of whole batches and of slices."""

import datetime
import decimal
import random

import pyarrow as pa
import pytest

from engine.graph.said_operators import JoinType
from tests.join.join_oracle import assert_joins_like_oracle

TYPES = {
    "bool": (pa.bool_(), lambda n: n % 3 == 0),
    "int8": (pa.int8(), lambda n: n % 256 - 128),
    "uint16": (pa.uint16(), lambda n: n % 65536),
    "float16": (pa.float16(), lambda n: float(n % 1000)),
    "date": (pa.date32(), lambda n: datetime.date(2000, 1, 1) + datetime.timedelta(n)),
    "moment": (pa.timestamp("us", "Europe/Berlin"), lambda n: n * 1_000_003),
    "double": (pa.float64(), lambda n: n / 7),
    "decimal": (pa.decimal128(30, 2), lambda n: decimal.Decimal(n).scaleb(-2)),
    "wide": (pa.decimal256(60, 0), lambda n: decimal.Decimal(n) * 10**40),
    "three": (pa.binary(3), lambda n: n.to_bytes(3, "big")),
    "text": (pa.string(), lambda n: f"text {n}"),
}


def new_table(prefix, keys, null_share, seed):
    chance = random.Random(seed)
    columns = {prefix + "key": pa.array(keys, pa.int64())}
    for name, (data_type, value) in TYPES.items():
        values = [None if chance.random() < null_share else value(chance.randrange(1 << 20)) for _ in keys]
        columns[prefix + name] = pa.array(values, data_type)
    return pa.table(columns)


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.LEFT, JoinType.FULL])
@pytest.mark.parametrize("is_unique", [True, False])
@pytest.mark.parametrize("null_share", [0.0, 0.2])
def test_columns_of_every_width_come_out_by_row(tmp_path, how, is_unique, null_share):
    # One in five probe rows finds nothing: the others are taken. Batches are slices that begin within a byte of bits.
    keys = [number % 50 if number % 5 else 1000 + number for number in range(2100)]
    build_keys = list(range(50)) if is_unique else [number % 50 for number in range(120)]
    left, right = new_table("l_", keys, null_share, 1), new_table("r_", build_keys, null_share, 2)
    run = assert_joins_like_oracle(tmp_path, how, left, right, [0], [0], pages=512, batch_rows=701)
    assert len(run.batches) >= 3
