"""Pages and row groups that cannot have wanted rows are not opened; what is left is what a scan of all would leave."""

import contextlib
import datetime
import os
import random
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import col, lit
from engine.graph.source_spec import ParquetSource
from engine.parquet import page_bounds, page_index
from engine.parquet.open_file import OpenFile
from engine.parquet.page_bounds import PageIndexes
from engine.parquet.reader import ParquetReader
from engine.parquet.source import parquet_source

ROWS = 20_000
DAY = datetime.date(2000, 1, 1)
TABLE = pa.table(
    {
        "n": pa.array([row if row % 1000 < 900 else None for row in range(ROWS)], pa.int64()),
        "day": pa.array([DAY + datetime.timedelta(row // 100) for row in range(ROWS)]),
        "price": pa.array([Decimal(row).scaleb(-2) for row in range(ROWS)], pa.decimal128(15, 2)),
        "word": [f"w{row:06}" for row in range(ROWS)],
        "real": [float(row) if row % 7 else float("nan") for row in range(ROWS)],
        "mixed": [row * 7919 % ROWS for row in range(ROWS)],
        "nothing": pa.array([None] * 10_000 + list(range(10_000)), pa.int32()),
        "text": ["x" * (row % 50) for row in range(ROWS)],
    }
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "t.parquet"
    pq.write_table(
        TABLE, path, row_group_size=ROWS, data_page_size=4096, write_batch_size=500, write_page_index=True,
        use_dictionary=["day"],
    )  # fmt: skip
    return str(path)


def possible(path, predicate, group=0):
    file = OpenFile(path, [])
    _, _, schema = parquet_source(path)
    found = file.indexes.possible_rows(group, predicate.expression, schema)
    file.close()
    return found


def filtered(path, predicate, columns=("mixed", "text")):
    spec, _, _ = parquet_source(path)
    wanted = ParquetSource(
        spec.paths, spec.splits, tuple(columns), types_ipc=spec.types_ipc, predicate=predicate.expression
    )
    with contextlib.closing(ParquetReader(wanted, spec.splits)) as reader:
        batches = list(reader)
    return pa.Table.from_batches(batches) if batches else TABLE.select(columns).slice(0, 0)


PREDICATES = {
    "range of numbers": (col("n").between(5000, 5100), 1000),
    "no such number": (col("n") == 950, 1500),
    "day": (col("day") == DAY + datetime.timedelta(77), 4500),
    "decimal": (col("price") > lit(Decimal("199.00")), 1000),
    "word": (col("word") == "w012345", 1500),
    "beginning": (col("word").str.starts_with("w0001"), 1500),
    "real": (col("real") == 17_000.0, 1500),
    "nulls": (col("nothing").is_null(), 11_500),
    "values": (col("nothing") >= 2000, 8500),
    "both": ((col("n") < 8000) & (col("price") > lit(Decimal("70.00"))), 3000),
    "list": (col("n").is_in([3, 19_003]), 3000),
}


@pytest.mark.parametrize("name", PREDICATES)
def test_rows_that_pages_leave_are_those_that_a_scan_leaves(path, name):
    predicate, rows_max = PREDICATES[name]
    ranges = possible(path, predicate)
    assert ranges is not None
    assert sum(end - start for start, end in ranges) <= rows_max
    expected = TABLE.append_column("row", pa.array(range(ROWS)))
    for column in ("mixed", "text"):
        wanted = duckdb_filtered(expected, name, column)
        assert filtered(path, predicate).column(column).to_pylist() == wanted


CONDITIONS = {
    "range of numbers": "n BETWEEN 5000 AND 5100",
    "no such number": "n = 950",
    "day": "day = DATE '2000-01-01' + 77",
    "decimal": "price > 199.00",
    "word": "word = 'w012345'",
    "beginning": "word LIKE 'w0001%'",
    "real": "real = 17000.0",
    "nulls": "nothing IS NULL",
    "values": "nothing >= 2000",
    "both": "n < 8000 AND price > 70.00",
    "list": "n IN (3, 19003)",
}


def duckdb_filtered(numbered, name, column):
    rows = duckdb.sql(f"SELECT {column} FROM numbered WHERE {CONDITIONS[name]} ORDER BY row").fetchall()
    return [row[0] for row in rows]


@pytest.mark.parametrize(
    "predicate",
    [col("mixed") == 77, col("n") == col("mixed"), col("n").is_not_null(), col("real") > 5.0, col("text") == "x"],
    ids=str,
)
def test_rows_in_no_order_and_parts_over_two_columns_leave_all(path, predicate):
    assert possible(path, predicate) is None


def test_pages_that_are_ruled_out_are_not_opened(path, tmp_path):
    """A damaged page is not seen by who does not want its rows."""
    damaged = tmp_path / "damaged.parquet"
    table = TABLE.select(["n", "mixed"])
    pq.write_table(
        table, damaged, data_page_size=4096, write_batch_size=500, write_page_index=True, use_dictionary=False,
        compression="none", write_page_checksum=True,
    )  # fmt: skip
    data = bytearray(damaged.read_bytes())
    data[data.index((12_000).to_bytes(8, "little") + (12_001).to_bytes(8, "little"))] ^= 1
    damaged.write_bytes(data)
    assert filtered(str(damaged), col("n") < 3000, ("n",)).num_rows == 2700
    with pytest.raises(Exception, match="checksum"):
        filtered(str(damaged), col("n") > 3000, ("n",))


def test_looking_is_given_up_where_nothing_is_left_out(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, row_group_size=1000, data_page_size=1024, write_batch_size=100, write_page_index=True)
    looked_at = []
    really = PageIndexes.possible_rows
    monkeypatch.setattr(PageIndexes, "possible_rows", lambda *a: looked_at.append(a[1]) or really(*a))
    filtered(str(path), col("mixed") > 10_000)
    assert looked_at == [0, 1]
    looked_at.clear()
    filtered(str(path), col("n") % 2 == 0)
    assert looked_at == [0, 1]


def test_a_page_that_is_all_of_its_row_group_is_not_asked_for_bounds(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(page_bounds, "column_index", asked.append)
    path = str(tmp_path / "t.parquet")
    pq.write_table(TABLE.slice(0, 1000), path, write_page_index=True)
    assert possible(path, col("n") == 5000) is None
    assert not asked


def test_a_file_without_indexes_is_read_whole(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, data_page_size=4096, write_batch_size=500)
    assert possible(str(path), col("n") < 10) is None
    assert filtered(str(path), col("n") < 10).num_rows == 10


def test_damaged_indexes_are_told_or_say_less(path):
    """Whatever bits flip in an index, it is refused, or lists pages; nothing goes beyond its bytes."""
    footer = _footer(path)
    places = page_index.index_places(footer)[0][0]
    with Path(path).open("rb") as file:
        data = os.pread(file.fileno(), places.column_index_bytes, places.column_index)
        offsets = os.pread(file.fileno(), places.offset_index_bytes, places.offset_index)
    rnd = random.Random(3)
    for parse, sound in (
        (page_index.column_index, data),
        (page_index.page_places, offsets),
        (page_index.index_places, footer),
    ):
        parse(sound)
        for _ in range(400):
            damaged = bytearray(sound)
            damaged[rnd.randrange(len(damaged))] ^= 1 << rnd.randrange(8)
            for broken in (damaged, damaged[: rnd.randrange(len(damaged))]):
                try:
                    parse(bytes(broken))
                except ValueError as error:
                    assert "Parquet" in str(error)


def _footer(path):
    whole = Path(path).read_bytes()
    return whole[-8 - int.from_bytes(whole[-8:-4], "little") : -8]


@pytest.fixture(scope="module")
def bloom_path(tmp_path_factory):
    """DuckDB writes Bloom filters for columns with dictionaries."""
    path = tmp_path_factory.mktemp("bloom") / "b.parquet"
    duckdb.sql(
        f"COPY (SELECT (i * 7919) % 100003 * 2 AS id, 'user ' || (i * 7919) % 100003 * 2 AS name,"
        f" DATE '2000-01-01' + ((i * 7919) % 5000 * 2)::INTEGER AS day, i::SMALLINT % 7 AS small"
        f" FROM range(20000) AS t(i)) TO '{path}' (ROW_GROUP_SIZE 5000, DICTIONARY_SIZE_LIMIT 100000)"
    )
    return str(path)


@pytest.mark.parametrize("column", ["id", "name", "day"])
def test_row_groups_without_a_value_are_told_by_bloom_filters(bloom_path, column):
    table = pq.read_table(bloom_path)
    file = OpenFile(bloom_path, [])
    assert file.footer.num_row_groups > 1
    file_of_arrow = pq.ParquetFile(bloom_path)
    groups = [
        {*file_of_arrow.read_row_group(group, columns=[column]).column(0).to_pylist()}
        for group in range(file.footer.num_row_groups)
    ]
    ruled_out = 0
    for value in random.Random(1).sample(table.column(column).to_pylist(), 50):
        absent = {"id": lambda v: v + 1, "name": lambda v: v + "?", "day": lambda v: v + datetime.timedelta(1)}[column](
            value
        )
        for group, there in enumerate(groups):
            equal = (col(column) == lit(value)).expression
            assert file.indexes.which_may_have([group], equal) or value not in there
            ruled_out += not file.indexes.which_may_have([group], (col(column) == lit(absent)).expression)
    file.close()
    assert ruled_out > 150


def test_a_scan_leaves_out_row_groups_by_bloom_filters(bloom_path):
    spec, _, _ = parquet_source(bloom_path)
    value = pq.read_table(bloom_path).column("id")[17].as_py()
    for asked, groups_left in ((col("id").is_in([value, 1]), 1), ((col("id") == 99_999), 0)):
        reader = ParquetReader(
            ParquetSource(spec.paths, spec.splits, ("name",), types_ipc=spec.types_ipc, predicate=asked.expression),
            spec.splits,
        )
        found = [row for batch in reader for row in batch.column(0).to_pylist()]
        assert found == ([f"user {value}"] if groups_left else [])
        assert reader.pruned_groups >= len(spec.splits) - groups_left - 1
        reader.close()
