"""Rows that a filter leaves are those that it leaves of all, whatever lies in the file and how columns are read."""

import contextlib
import random
import string
from decimal import Decimal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.column_expressions.expressions import col, lit
from engine.errors import DataError
from engine.expressions.evaluate import CompiledExpression, evaluate
from engine.memory.budget import Budget, Kind
from engine.parquet import scan_memory
from engine.parquet.column_streams import ColumnStream
from engine.parquet.reader import ParquetReader
from engine.parquet.row_filter import RowFilter
from engine.parquet.source import parquet_source
from engine.records.adaptive_key_filter import AdaptiveKeyFilter
from engine.records.kept_rows import kept_rows
from engine.records.key_filter import key_filter

ROWS = 20_000


def _table():
    chance = random.Random(7)
    words = ["MAIL", "SHIP", "AIR", "", "é" * 5, None]
    return pa.table(
        {
            "day": pa.array([row // 100 for row in range(ROWS)], pa.int32()),
            "word": [words[chance.randrange(6)] for _ in range(ROWS)],
            "view": pa.array([words[row % 6] for row in range(ROWS)], pa.string_view()),
            "large": pa.array([words[row % 5] for row in range(ROWS)], pa.large_string()),
            "note": ["".join(chance.choices(string.ascii_letters, k=8)) for _ in range(ROWS)],
            "price": pa.array(
                [None if row % 13 == 0 else Decimal(row % 97) for row in range(ROWS)], pa.decimal128(15, 2)
            ),
        }
    )


TABLE = _table()
FILTERS = [
    col("day") < 30,
    col("day") == 199,
    (col("day") >= 50) & (col("day") < 52),
    col("day") < 0,
    col("word") == "MAIL",
    col("word").is_in(["SHIP", "AIR"]) & (col("price") > 50),
    col("word").is_null() & col("view").is_not_null(),
    (col("word") != "AIR") & (col("view") != col("large")),
    col("large").str.starts_with("A") | col("large").is_null(),
    ~(col("view") == "MAIL"),
    col("note").str.contains("q") & (col("word") == ""),
    lit(True) & (col("word") > "B"),
]
COLUMNS = [("day", "word", "view", "large", "note", "price"), ("price", "note"), ("word",), ("large", "day")]


def _filtered(path, predicate, columns, new_space=None):
    spec, _, schema = parquet_source(path)
    spec = msgspec.structs.replace(spec, columns=columns, predicate=predicate.expression)
    with contextlib.closing(ParquetReader(spec, spec.splits, new_space)) as reader:
        found = pa.Table.from_batches(reader, pa.schema([schema.field(name) for name in columns]))
    return found, reader


def _expected(predicate, columns):
    plain = TABLE.cast(pa.schema([(name, _plain(TABLE.schema.field(name).type)) for name in TABLE.schema.names]))
    mask = evaluate(predicate.expression, plain.combine_chunks().to_batches()[0])
    return plain.filter(mask).select(list(columns))


def _plain(data_type):
    return pa.string() if data_type == pa.string_view() else data_type


@pytest.mark.parametrize("predicate", FILTERS, ids=str)
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=["coded", "plain"])
def test_a_filter_leaves_the_rows_that_it_would_leave_of_all(tmp_path, predicate, options):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, row_group_size=6000, **options)
    for columns in COLUMNS:
        found, _ = _filtered(path, predicate, columns)
        assert found.equals(_expected(predicate, columns)), columns


def test_a_filter_leaves_the_same_rows_where_columns_are_read_one_after_the_other(tmp_path, monkeypatch, new_space):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, row_group_size=6000, data_page_size=1 << 30)
    budget = Budget()
    for kind in (Kind.ARROW, Kind.WORKER):
        budget.set_limit(kind, 1 << 20)
    monkeypatch.setattr(scan_memory, "process_budget", budget)
    monkeypatch.setattr(scan_memory, "LEAST_BYTES", 0)
    predicate = (col("word") == "MAIL") & (col("price") > 50)
    spaces = []
    with budget.reserve(Kind.ARROW, 900_000):
        found, _ = _filtered(path, predicate, COLUMNS[0], lambda: spaces.append(new_space()) or spaces[-1])
    assert found.equals(_expected(predicate, COLUMNS[0]))
    assert spaces


def test_row_groups_that_cannot_have_such_rows_are_not_read(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, row_group_size=1000)
    found, reader = _filtered(path, col("day") == 42, ("day", "note"))
    assert (found.num_rows, reader.pruned_groups) == (100, 19)


def test_files_of_several_widths_are_filtered_by_the_widest(tmp_path):
    pq.write_table(pa.table({"n": pa.array(range(10), pa.int32()), "t": ["a"] * 10}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": pa.array(range(5, 15), pa.int64()), "t": ["b"] * 10}), tmp_path / "b.parquet")
    found, _ = _filtered(tmp_path, col("n") >= 8, ("n", "t"))
    assert found.column("n").to_pylist() == [8, 9, *range(8, 15)]


class _Decoded:
    """Streams of a table's columns, and how many rows of each have been read."""

    def __init__(self):
        self.rows = {}

    def __call__(self, columns, rows):
        return _DecodedStream(self.rows, columns, rows)


class _DecodedStream(ColumnStream):
    def __init__(self, counted, columns, rows):
        self._counted = counted
        self._columns = columns
        self._batches = iter(TABLE.select(columns).cast(_schema(columns)).combine_chunks().to_batches(rows))

    def read(self, mask=None):
        batch = next(self._batches, None)
        if batch is None:
            return None
        batch = batch if mask is None else kept_rows(batch, mask)
        for name in self._columns:
            self._counted[name] = self._counted.get(name, 0) + batch.num_rows
        return batch

    def skip(self):
        next(self._batches)


def _schema(columns):
    return pa.schema([(name, _plain(TABLE.schema.field(name).type)) for name in columns])


@pytest.mark.parametrize(
    ("predicate", "decoded", "left"),
    [
        (col("day") < 0, 0, 0),
        (col("day") < 30, 3000, 3000),
        (col("day") == 42, 100, 100),
        (col("day") >= 150, 5000, 5000),
    ],
    ids=str,
)
def test_columns_beside_those_of_a_filter_are_decoded_of_rows_that_are_left(predicate, decoded, left):
    read = _Decoded()
    row_filter = RowFilter(predicate.expression, _schema(TABLE.schema.names), ())
    found = list(row_filter.batches(read, ["note"], 1000, ROWS))
    assert sum(batch.num_rows for batch in found) == left
    assert all(batch.num_rows for batch in found)
    assert (read.rows["day"], read.rows.get("note", 0)) == (ROWS, decoded)


def test_a_part_over_numbers_of_texts_that_can_fail_sees_rows_only(tmp_path):
    path = tmp_path / "t.parquet"
    numbers = pa.table({"text": ["1", "x"] * 5000}).slice(0, 10_000)
    pq.write_table(numbers, path)
    _, _, schema = parquet_source(path)
    predicate = (col("text").cast(pa.int64()) > 0).expression
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), pa.array(["1", "x"]))
    batch = pa.RecordBatch.from_arrays([coded], names=["text"])
    assert RowFilter(predicate, schema, ["text"]).mask(batch).array().to_pylist() == [True, True]
    with pytest.raises(DataError, match="text='x'"):
        _filtered(path, col("text").cast(pa.int64()) > 0, ("text",))


def test_few_rows_that_are_left_with_the_numbers_of_many_texts_are_no_wide_rows(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    texts = pa.array([f"{text:040}" for text in range(150)])
    rows = 40_000
    numbers = pa.array([row % 150 for row in range(rows)], pa.int32())
    columns = {f"text_{index}": pa.DictionaryArray.from_arrays(numbers, texts) for index in range(20)}
    table = pa.table({"n": range(rows), **columns})
    pq.write_table(table, path, row_group_size=10_000, store_schema=False)
    looked_at = []
    mask = RowFilter.mask
    monkeypatch.setattr(RowFilter, "mask", lambda self, batch: looked_at.append(batch.num_rows) or mask(self, batch))
    monkeypatch.setattr(scan_memory, "process_budget", Budget())  # other tests leave little of the process's own
    found, _ = _filtered(path, col("n") % 5000 == 7, ("n", *columns))
    assert found.column("n").to_pylist() == list(range(7, rows, 5000))
    assert sum(looked_at) == rows
    assert len(looked_at) < 100, "a batch has as many rows as are a batch of bytes"


def _asked_rows(monkeypatch, predicate, tests):
    """Return of how many rows the predicate was asked in each batch of a thousand, and the days that were left."""
    asked = []
    mask = CompiledExpression.mask

    def counted(self, batch, places=None):
        asked.append(batch.num_rows)
        return mask(self, batch, places)

    monkeypatch.setattr(CompiledExpression, "mask", counted)
    row_filter = RowFilter(predicate.expression, _schema(TABLE.schema.names), (), tests)
    found = row_filter.batches(_Decoded(), ["day"], 1000, ROWS)
    return asked, [day for batch in found for day in batch.column("day").to_pylist()]


def _days(*days):
    return AdaptiveKeyFilter("day", key_filter([pa.array(days, pa.int32())], 64))


def test_keys_are_tested_before_a_predicate_that_leaves_more_rows(monkeypatch):
    asked, days = _asked_rows(monkeypatch, col("price") >= 0, [_days(3, 111, 112)])
    # the first batch says which column leaves few by itself, and which of them leaves fewer; of batches without such a
    # key nothing more is asked
    assert asked == [1000, 1000, 200]
    priced = [row // 100 for row in range(ROWS) if row % 13 and row // 100 in (3, 111, 112)]
    assert days == priced


def test_a_predicate_that_leaves_fewer_rows_comes_first(monkeypatch):
    asked, days = _asked_rows(monkeypatch, col("day") == 5, [_days(*range(100))])
    assert asked == [1000] * 20
    assert days == [5] * 100


def test_a_predicate_that_can_fail_sees_all_rows(monkeypatch):
    asked, days = _asked_rows(monkeypatch, lit(1) // (col("day") + 1) >= 0, [_days(3)])
    assert asked == [1000] * 20
    assert days == [3] * 100


@pytest.mark.parametrize("possible", [None, ((0, 700), (2500, 2600), (6100, 12_345))])
@pytest.mark.parametrize("looks", [1, 2, 7, 100])
@pytest.mark.parametrize("columns", [["day"], ["price"], ["price", "day", "note"]])
def test_batches_that_are_looked_at_together_come_out_one_by_one(columns, looks, possible):
    predicate = (col("day") == 5) | (col("day") >= 61)
    row_filter = RowFilter(predicate.expression, _schema(TABLE.schema.names), ())
    batches = list(row_filter.batches(_Decoded(), columns, 1000, ROWS, possible, looks=looks))
    inside = [possible is None or any(first <= row < end for first, end in possible) for row in range(ROWS)]
    wanted = TABLE.select(columns).filter(
        pa.array([inside[row] and (row // 100 == 5 or row // 100 >= 61) for row in range(ROWS)])
    )
    assert pa.Table.from_batches(batches).equals(wanted)
    assert max(batch.num_rows for batch in batches) <= (1000 if columns != ["day"] else 1000 * looks)
