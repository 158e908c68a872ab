"""Integers as DuckDB writes them in its second version of Parquet, where they lie far apart: read, or named."""

import duckdb
import pyarrow.parquet as pq
import pytest

from engine import col, count, max_, min_
from engine.errors import DataError, JobExecutionError

#: of row i
VALUES = {
    "INTEGER": "CASE WHEN i % 2 = 0 THEN 2147483647 - i ELSE -2147483648 + i END",
    "UINTEGER": "CASE WHEN i % 2 = 0 THEN 4294967295 - i ELSE i END",
    "BIGINT": "CASE WHEN i % 2 = 0 THEN 9223372036854775807 - i ELSE -9223372036854775808 + i END",
    "UBIGINT": "CASE WHEN i % 2 = 0 THEN 18446744073709551615 - i ELSE i END",
    "SMALLINT": "CASE WHEN i % 2 = 0 THEN 32767 - i % 32000 ELSE -32768 + i % 32000 END",
    "DECIMAL(9, 2)": "CASE WHEN i % 2 = 0 THEN 9999999.99 - i ELSE -9999999.99 + i END",
    "DECIMAL(18, 2)": "CASE WHEN i % 2 = 0 THEN 99999999999999.99 - i ELSE -99999999999999.99 + i END",
    "DATE": "CASE WHEN i % 2 = 0 THEN DATE '9999-12-31' - i::INTEGER ELSE DATE '0001-01-01' + i::INTEGER END",
}
CODECS = ["uncompressed", "snappy", "zstd"]


def written(path, value, rows, codec="snappy", options=""):
    query = f"SELECT {value} AS v, i AS k FROM range({rows}) t(i)"
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet, PARQUET_VERSION V2, COMPRESSION {codec}{options})")
    return duckdb.sql(f"{query} ORDER BY k").to_arrow_table()


@pytest.mark.parametrize("nulls", [False, True], ids=["all", "nulls"])
@pytest.mark.parametrize("data_type", VALUES)
def test_all_kinds_of_integers_are_read(environment, tmp_path, data_type, nulls):
    value = f"({VALUES[data_type]})::{data_type}"
    value = f"CASE WHEN i % 3 > 0 THEN {value} END" if nulls else value
    path = tmp_path / "far.parquet"
    expected = written(path, value, 20_000, CODECS[len(data_type) % 3], ", ROW_GROUP_SIZE 8192")
    footer = pq.read_metadata(path)
    assert footer.row_group(0).column(0).encodings == ("DELTA_BINARY_PACKED",)
    data = environment.read_parquet(path)
    assert data.sort("k").to_arrow().column("v").to_pylist() == expected.column("v").to_pylist()
    few = data.filter(col("k") % 977 == 5).sort("k").to_arrow().column("v").to_pylist()
    assert few == expected.column("v").to_pylist()[5::977]
    found = data.agg(n=count(col("v")), low=min_("v"), high=max_("v")).collect()[0]
    assert tuple(found) == duckdb.sql("SELECT count(v), min(v), max(v) FROM expected").fetchall()[0]


def test_a_single_row_and_large_pages_are_read_too(environment, tmp_path):
    for rows, options in ((1, ""), (3, ""), (1_500_000, ", ROW_GROUP_SIZE 1500000")):
        expected = written(tmp_path / f"{rows}.parquet", f"({VALUES['UINTEGER']})::UINTEGER", rows, options=options)
        found = environment.read_parquet(tmp_path / f"{rows}.parquet").sort("k").to_arrow()
        assert found.column("v").equals(expected.column("v")), rows


def test_many_small_files_are_read_too(environment, tmp_path):
    for index in range(20):
        written(tmp_path / f"{index:02d}.parquet", f"({VALUES['INTEGER']})::INTEGER", 50)
    found = environment.read_parquet(tmp_path).agg(n=count(), high=max_("v")).collect()[0]
    assert tuple(found) == (1000, 2**31 - 1)


@pytest.mark.parametrize("form", ["[{}]", "{{'x': {}}}", "MAP {{'a': {}}}"], ids=["list", "struct", "map"])
def test_what_is_nested_names_writer_column_and_place(environment, tmp_path, form):
    written(tmp_path / "far.parquet", form.format(f"({VALUES['INTEGER']})::INTEGER"), 20_000)
    with pytest.raises((DataError, JobExecutionError)) as caught:
        environment.read_parquet(tmp_path / "far.parquet").collect()
    text = str(caught.value)
    assert "far.parquet, row group" in text
    assert "column 'v': " in text
    assert "row 0 of the row group, written by DuckDB version v2" in text
    assert "write the file with PARQUET_VERSION V1" in text
