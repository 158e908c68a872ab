"""Of the columns of a filter, those behind the first one are decoded of rows that it leaves, and rows are the same."""

import contextlib
from decimal import Decimal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine.column_expressions.expressions import col, lit
from engine.parquet import filter_steps
from engine.parquet.column_streams import ColumnStream
from engine.parquet.filter_steps import FirstColumn
from engine.parquet.reader import ParquetReader
from engine.parquet.row_filter import RowFilter
from engine.parquet.source import parquet_source
from engine.records.adaptive_key_filter import AdaptiveKeyFilter
from engine.records.kept_rows import kept_rows
from engine.records.key_filter import key_filter

ROWS = 10_000
TABLE = pa.table(
    {
        "day": pa.array([row % 50 for row in range(ROWS)], pa.int32()),
        "item": pa.array([None if row % 7 == 0 else row % 90 for row in range(ROWS)], pa.int32()),
        "note": [f"n{row}" for row in range(ROWS)],
        "place": pa.array(range(ROWS), pa.int32()),
    }
)
DAY_AND_ITEM = (col("day") == 42) & (col("item") < 60)


class _Stream(ColumnStream):
    def __init__(self, read, columns, rows):
        self._read, self._columns = read, columns
        self._batches = iter(TABLE.select(columns).combine_chunks().to_batches(rows))

    def read(self, mask=None):
        batch = next(self._batches)
        batch = batch if mask is None else kept_rows(batch, mask)
        for name in self._columns:
            self._read[name] = self._read.get(name, 0) + batch.num_rows
        return batch

    def skip(self):
        next(self._batches)


def row_groups(row_filter, columns=("note", "day"), count=2, **rest):
    """For each of some row groups that are alike: the rows that are left, and of how many each column was decoded."""
    for _ in range(count):
        read = {}
        batches = row_filter.batches(
            lambda names, rows, read=read: _Stream(read, names, rows), list(columns), 1000, ROWS, **rest
        )
        yield pa.Table.from_batches(batches, TABLE.select(columns).schema), read


def days(*wanted):
    return AdaptiveKeyFilter("day", key_filter([pa.array(wanted, pa.int32())], 64))


def items(*wanted):
    return AdaptiveKeyFilter("item", key_filter([pa.array(wanted, pa.int32())], 64))


def filter_of(predicate, *tests):
    return RowFilter(None if predicate is None else predicate.expression, TABLE.schema, (), tests)


WANTED = TABLE.filter((pc.field("day") == 42) & (pc.field("item") < 60)).select(["note", "day"])


@pytest.mark.parametrize(
    "new_filter",
    [
        lambda: filter_of(DAY_AND_ITEM),
        lambda: filter_of((col("item") < 60) & ((col("day") >= 42) & (col("day") < 43))),
        lambda: filter_of(col("item") < 60, days(42)),
        lambda: filter_of(None, items(*range(60)), days(42)),
        lambda: filter_of(col("day") == 42, items(*range(60))),
        lambda: filter_of((col("day") == 42) & ((col("item") < 60) | (col("day") > 42))),
    ],
    ids=["parts", "two parts of one column", "a test", "tests", "a part and a test", "a part of both"],
)
@pytest.mark.parametrize("looks", [1, 4])
def test_other_columns_are_decoded_of_the_rows_that_the_first_one_leaves(new_filter, looks):
    (before, read_before), (after, read_after) = row_groups(new_filter(), looks=looks)
    assert before.equals(WANTED)
    assert after.equals(WANTED)
    together = 1000 * looks  # the first batch, which says that it is to be in steps from then on
    assert (read_before["day"], read_before["item"]) == (ROWS, together + (ROWS - together) // 50)
    assert (read_after["day"], read_after["item"]) == (ROWS, ROWS // 50)
    assert read_after["note"] == WANTED.num_rows


def test_ranges_of_rows_that_are_looked_at_are_those_of_the_first_column():
    possible = ((0, 700), (2500, 2600), (6100, 7345))
    inside = np.zeros(ROWS, bool)
    for first, end in possible:
        inside[first:end] = True
    for columns in (["note", "day"], ["item"], ["day"]):
        row_filter = filter_of(DAY_AND_ITEM)
        list(row_groups(row_filter, columns, 1))
        ((found, read),) = row_groups(row_filter, columns, 1, possible=possible, looks=3)
        wanted = TABLE.filter(pa.array(inside)).filter((pc.field("day") == 42) & (pc.field("item") < 60))
        assert found.equals(wanted.select(columns))
        assert read["day"] == inside.sum()


def test_rows_without_any_that_the_first_column_leaves_are_passed_over():
    row_filter = filter_of((col("day") == 77) & (col("item") < 60))
    *_, (found, read) = row_groups(row_filter, ["note", "day"])
    assert found.num_rows == 0
    assert read == {"day": ROWS}


@pytest.mark.parametrize(
    "new_filter",
    [
        lambda: filter_of((col("day") < 30) & (col("item") < 60)),
        lambda: filter_of((lit(1) // (col("day") - 60) < 0) & (col("day") == 42) & (col("item") < 60)),
        lambda: filter_of(col("item") < col("day")),
    ],
    ids=["many rows", "a part that can fail", "no part of one column"],
)
def test_columns_are_read_together_where_no_part_alone_may_leave_few_rows(new_filter):
    *_, (_, read) = row_groups(new_filter())
    assert (read["day"], read["item"]) == (ROWS, ROWS)


def test_a_column_that_leaves_many_of_later_rows_is_no_longer_the_first(monkeypatch):
    row_filter = filter_of(DAY_AND_ITEM)
    list(row_groups(row_filter))
    monkeypatch.setattr(filter_steps, "_STEP_SHARE_LIMIT", 0.001)
    *_, (found, read) = row_groups(row_filter)
    assert found.equals(WANTED)
    assert (read["day"], read["item"]) == (ROWS, ROWS)


def test_within_a_row_group_columns_are_read_in_steps_and_together_again(monkeypatch):
    monkeypatch.setattr(filter_steps, "_STEP_SHARE_LIMIT", 0.3)
    row_filter = filter_of((col("place") >= 5000) & (col("day") < 49))
    ((found, read),) = row_groups(row_filter, ["place"], 1)
    assert found.equals(TABLE.filter((pc.field("place") >= 5000) & (pc.field("day") < 49)).select(["place"]))
    # of all rows of the first batch, and of the sixth one on; three batches of eight are beyond the limit
    assert read == {"place": ROWS, "day": 6000}


def test_where_columns_are_read_in_steps_they_are_opened_anew_once():
    opened = []

    def open_columns(names, rows):
        opened.append(tuple(names))
        return _Stream({}, names, rows)

    batches = filter_of(DAY_AND_ITEM).batches(open_columns, ["note", "day"], 1000, ROWS, looks=2)
    assert pa.Table.from_batches(batches).equals(WANTED)
    assert sorted(opened) == [("day",), ("day", "item"), ("item",), ("note",)]


def test_rows_that_a_test_drops_as_the_first_one_are_counted_once():
    test = days(42)
    row_filter = filter_of(col("item") < 60, test)
    list(row_groups(row_filter, count=1))
    before = test.rows_dropped
    list(row_groups(row_filter, count=1))
    assert test.rows_dropped - before == ROWS - ROWS // 50


@pytest.mark.parametrize(
    "predicate",
    [
        (col("word") == "rare") & (col("price") > 40) & (col("n") < 200_000),
        (col("price") == Decimal("77.25")) & (col("word") != "rare"),
        (col("day") == 3) & (col("word").is_null() | (col("price") < 20)),
    ],
    ids=str,
)
def test_rows_of_files_are_the_same(tmp_path, monkeypatch, predicate):
    rows = 420_000
    table = pa.table(
        {
            "n": range(rows),
            "day": pa.array(np.arange(rows) // 1000 % 37, pa.int32()),
            "word": [("rare", None, "often", "many")[0 if row % 40 == 0 else 1 + row % 3] for row in range(rows)],
            "price": pa.array(np.arange(rows) % 97 + 0.25).cast(pa.decimal128(7, 2)),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=140_000)
    spec, _, schema = parquet_source(tmp_path / "t.parquet")
    spec = msgspec.structs.replace(spec, predicate=predicate.expression)
    first = []
    mask = FirstColumn.mask
    monkeypatch.setattr(FirstColumn, "mask", lambda self, array: first.append(self.column) or mask(self, array))
    with contextlib.closing(ParquetReader(spec, spec.splits)) as reader:
        found = pa.Table.from_batches(reader, schema)
    monkeypatch.setattr(filter_steps, "STEP_SHARE_MAX", -1.0)
    with contextlib.closing(ParquetReader(spec, spec.splits)) as reader:
        assert found.equals(pa.Table.from_batches(reader, schema))
    assert found.num_rows > 0
    assert len(set(first)) == 1
