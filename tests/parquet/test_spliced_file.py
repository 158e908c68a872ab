"""Files that are made of parts of others are read as such by Arrow, DuckDB and Drey; what is copied keeps its bytes."""

import datetime
import decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.parquet.footer_fields import fields_of, file_end, footer_of
from engine.parquet.spliced_file import SplicedFile

ROWS = 5000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": pa.array([None if n % 7 == 0 else n / 3 for n in range(ROWS)]),
        "s": pa.array([None if n % 11 == 0 else f"text {n % 50}" for n in range(ROWS)]),
        "wide": pa.array([f"{n}" * 20 for n in range(ROWS)]),
        "l": pa.array([[n, None] if n % 3 else None for n in range(ROWS)], pa.list_(pa.int32())),
        "r": pa.array([{"a": n, "b.c": {"d": f"{n}"}} for n in range(ROWS)]),
        "t": pa.array([datetime.datetime(2024, 1, 1) + datetime.timedelta(n) for n in range(ROWS)], pa.timestamp("us")),
        "d": pa.array([decimal.Decimal(n) / 100 for n in range(ROWS)], pa.decimal128(12, 2)),
        "b": pa.array([n % 2 == 0 for n in range(ROWS)]),
    }
)


def spliced(tmp_path, changes_of_group, **options):
    former, path = str(tmp_path / "former.parquet"), str(tmp_path / "new.parquet")
    pq.write_table(TABLE, former, row_group_size=1000, **options)
    file = SplicedFile(former, path, TABLE.schema)
    assert not file.differing
    for group in range(file.former.num_row_groups):
        file.write(group, changes_of_group.get(group, {}))
    assert file.finish() == (tmp_path / "new.parquet").stat().st_size
    assert file.footer.equals(pq.read_metadata(path))
    return path


def read_by_all(path):
    """The rows, by readers that agree on them."""
    found = pq.read_table(path)
    others = duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table()
    assert others.to_pylist() == found.to_pylist()
    with Environment() as env:
        assert env.read_parquet(path).sort("id").to_arrow().to_pylist() == found.to_pylist()
    return found


@pytest.mark.parametrize("codec", ["snappy", "zstd", "none", "gzip"])
def test_row_groups_and_columns_are_copied_and_changed(tmp_path, codec):
    doubled = {"x": lambda x: pc.multiply(x, 2.0), "l": lambda array: array.take(pa.array(range(999, -1, -1)))}
    path = spliced(tmp_path, {1: doubled, 3: {"s": lambda s: pa.array(["new"] * len(s))}}, compression=codec)
    found = read_by_all(path)
    assert found.slice(0, 1000).equals(TABLE.slice(0, 1000))
    second = TABLE.slice(1000, 1000)
    assert found.column("x").slice(1000, 1000) == pc.multiply(second.column("x"), 2.0)
    assert found.column("l").slice(1000, 1000).to_pylist() == second.column("l").to_pylist()[::-1]
    assert set(found.column("s").slice(3000, 1000).to_pylist()) == {"new"}
    for name in ("id", "wide", "r", "t", "d", "b"):
        assert found.column(name) == TABLE.column(name)


def test_what_is_copied_keeps_its_bytes_and_statistics(tmp_path):
    path = spliced(tmp_path, {2: {"id": lambda ids: pc.add(ids, 100_000)}})
    old, new = pq.read_metadata(tmp_path / "former.parquet"), pq.read_metadata(path)
    content = {"old": (tmp_path / "former.parquet").read_bytes(), "new": (tmp_path / "new.parquet").read_bytes()}
    for group in range(5):
        for leaf in range(old.num_columns):
            one, other = old.row_group(group).column(leaf), new.row_group(group).column(leaf)
            if (group, leaf) == (2, 0):
                assert other.statistics.min == 102_000
                continue
            assert one.statistics == other.statistics
            places = [each.dictionary_page_offset or each.data_page_offset for each in (one, other)]
            size = one.total_compressed_size
            assert content["old"][places[0] : places[0] + size] == content["new"][places[1] : places[1] + size]


def test_rows_that_go_are_missing_in_all_columns_and_a_group_of_none_is_none(tmp_path):
    def kept(array):
        return array.filter(pa.array([n % 2 == 0 for n in range(len(array))]))

    gone = dict.fromkeys(TABLE.schema.names, lambda array: array.slice(0, 0))
    path = spliced(tmp_path, {0: dict.fromkeys(TABLE.schema.names, kept), 4: gone})
    assert pq.read_metadata(path).num_row_groups == 4
    assert read_by_all(path).column("id").to_pylist() == [*range(0, 1000, 2), *range(1000, 4000)]


def test_columns_that_the_file_has_otherwise_are_told(tmp_path):
    former = str(tmp_path / "former.parquet")
    there = pa.table({"a": [1], "b": pa.array([1], pa.int32()), "c": pa.array([0], pa.timestamp("ns"))})
    pq.write_table(there, former, use_deprecated_int96_timestamps=True)
    wanted = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.timestamp("us")), ("d", pa.int64())])
    file = SplicedFile(former, str(tmp_path / "new.parquet"), wanted)
    assert file.differing == {"b", "c", "d"}
    file.abort()
    assert [path.name for path in tmp_path.iterdir()] == ["former.parquet"]


def test_a_column_without_nulls_stays_one(tmp_path):
    former, path = str(tmp_path / "former.parquet"), str(tmp_path / "new.parquet")
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string_view())])
    pq.write_table(pa.table([[1, 2], ["x", "y"]], schema=schema), former)
    file = SplicedFile(former, path, pa.schema([("a", pa.int64()), ("b", pa.string())]))
    assert not file.differing
    file.write(0, {"a": lambda a: pc.add(a, 1), "b": lambda b: pc.binary_join_element_wise(b, b, "")})
    file.finish()
    assert duckdb.sql(f"SELECT * FROM '{path}'").fetchall() == [(2, "xx"), (3, "yy")]


def test_fields_of_a_footer_are_its_bytes_again(tmp_path):
    path = tmp_path / "a.parquet"
    wide = pa.table({f"column {n}": pa.array([n, None]) for n in range(40)})
    pq.write_table(wide, path, sorting_columns=[pq.SortingColumn(1, True, False)], write_page_index=True)
    footer = pq.read_metadata(path)
    fields = fields_of(footer)
    assert path.read_bytes().endswith(file_end(fields))
    assert footer_of(fields).equals(footer)
