"""Sums of decimals from Parquet to the result: 64 bits within the task that reads them, and the same results."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import avg, col, count, max_, sum_
from engine.parquet.open_file import OpenFile

ROWS = 20_000
MONEY = pa.decimal128(15, 2)


@pytest.fixture
def items(tmp_path):
    cents = [None if row % 97 == 0 else row * 7 % 100_000 - 20_000 for row in range(ROWS)]
    table = pa.table(
        {
            "kind": [f"kind {row % 5}" for row in range(ROWS)],
            "price": pa.array([None if one is None else Decimal(one).scaleb(-2) for one in cents], MONEY),
            "discount": pa.array([Decimal(row % 11).scaleb(-2) for row in range(ROWS)], MONEY),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=6000, store_decimal_as_integer=True)
    return tmp_path / "t.parquet", table.to_pylist()


@pytest.fixture
def narrowed(monkeypatch):
    """The columns of which values were decoded to 64 bits."""
    found, narrow = set(), OpenFile.narrow

    def noted(self, columns):
        narrow(self, columns)
        found.update(name for name, data_type in self.types.items() if pa.types.is_decimal64(data_type))

    monkeypatch.setattr(OpenFile, "narrow", noted)
    return found


def charged(row):
    return None if row["price"] is None else row["price"] * (1 - row["discount"])


def summed(values):
    return sum(value for value in values if value is not None)


def test_sums_by_key(environment, items, narrowed):
    path, rows = items
    charge = col("price") * (1 - col("discount"))
    found = (
        environment.read_parquet(path)
        .filter(col("price") > -50)
        .group_by("kind")
        .agg(price=sum_(col("price")), charged=sum_(charge), mean=avg(col("discount")), rows=count(col("price")))
        .sort("kind")
        .to_arrow()
    )
    assert narrowed == {"price", "discount"}
    assert found.schema.field("price").type == pa.decimal128(38, 2)
    assert pa.types.is_decimal(found.schema.field("charged").type)
    for answer in found.to_pylist():
        of_kind = [row for row in rows if row["kind"] == answer["kind"] and (row["price"] or -99) > -50]
        assert answer["price"] == summed(row["price"] for row in of_kind)
        assert answer["charged"] == summed(map(charged, of_kind))
        assert answer["mean"] == float(summed(row["discount"] for row in of_kind) / len(of_kind))
        assert answer["rows"] == len(of_kind)


def test_what_is_asked_for_otherwise_is_wide(environment, items, narrowed):
    path, rows = items
    found = (
        environment.read_parquet(path)
        .group_by("kind")
        .agg(most=max_(col("price")), price=sum_(col("discount")))
        .to_arrow()
    )
    assert narrowed == {"discount"}
    assert found.schema.field("most").type == MONEY
    assert max(found["most"].to_pylist()) == max(row["price"] for row in rows if row["price"] is not None)


def test_rows_that_leave_the_task_are_of_their_type(environment, items, narrowed):
    path, rows = items
    made = environment.read_parquet(path).select("price", charged=col("price") * (1 - col("discount")))
    found = made.to_arrow()
    assert narrowed == {"discount"}
    assert found["price"].type == MONEY
    assert found["charged"].type.bit_width >= 128
    assert found.to_pylist() == [{"price": row["price"], "charged": charged(row)} for row in rows]
    prices = pa.schema([("price", MONEY)])
    assert environment.read_parquet(path).select("price").map_batches(lambda batch: batch, prices).count() == ROWS
