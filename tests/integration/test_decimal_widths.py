"""The page on decimals says how many digits each result has; Polars and DuckDB take them, and Parquet holds them."""

import re
from decimal import Decimal

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import engine
from engine import col
from engine.column_expressions.aggregates import Aggregate
from tests.tidy.imports import ROOT

PAGE = (ROOT / "docs" / "pages" / "guide" / "decimals.md").read_text(encoding="utf-8")
#: expression, type
ROWS = re.findall(r"(?m)^\|.*\| `([^`]+)` \| (decimal\(\d+, \d+\)|double|int64) \|$", PAGE)
TABLE = pa.table(
    {
        "p": pa.array([Decimal("2.01"), Decimal("7.50"), None], pa.decimal128(18, 2)),
        "r": pa.array([Decimal("1.25"), None, Decimal("3.000000001")], pa.decimal128(38, 18)),
        "i": pa.array([3, -4, None], pa.int32()),
        "n": pa.array([7, 8, 9], pa.int64()),
        "f": [0.5, None, 2.5],
    }
)
NAMES = {name: getattr(engine, name) for name in engine.__all__} | {"pa": pa, "Decimal": Decimal}
NAMES |= {name: col(name) for name in TABLE.schema.names}


def as_written(data_type):
    return str(data_type).replace("decimal128", "decimal")


@pytest.fixture(scope="module")
def found(open_environment):
    """The results of all rows of the page, by what is written there."""
    data = open_environment().from_arrow(TABLE)
    made = {written: eval(written, dict(NAMES)) for written, _ in ROWS}
    plain = {written: each for written, each in made.items() if not isinstance(each, Aggregate)}
    groups = {written: each for written, each in made.items() if isinstance(each, Aggregate)}
    rows = data.select(**{f"c{place}": each for place, each in enumerate(plain.values())}).to_arrow()
    totals = data.group_by().agg(**{f"g{place}": each for place, each in enumerate(groups.values())}).to_arrow()
    columns = dict(zip(plain, rows.columns, strict=True)) | dict(zip(groups, totals.columns, strict=True))
    return rows, totals, columns


def test_the_page_says_the_width_of_every_operation(found):
    assert len(ROWS) >= 30
    assert {written: as_written(found[2][written].type) for written, _ in ROWS} == dict(ROWS)


def test_polars_and_duckdb_take_the_results_and_parquet_holds_them(found, tmp_path):
    for number, table in enumerate(found[:2]):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path)
        assert polars.from_arrow(table).to_dicts() == table.to_pylist()
        assert polars.read_parquet(path).to_dicts() == table.to_pylist()
        names = table.schema.names
        by_duckdb = duckdb.sql(f"SELECT * FROM '{path}'").fetchall()
        assert [dict(zip(names, row, strict=True)) for row in by_duckdb] == table.to_pylist()
        assert duckdb.from_arrow(table).fetchall() == by_duckdb


def test_results_are_those_of_python(found):
    columns = found[2]
    assert columns["p * r"].to_pylist() == [Decimal("2.5125"), None, None]
    assert columns["r * r"].to_pylist() == [Decimal("1.5625"), None, Decimal("9.000000006000000001")]
    assert columns["median(p)"].to_pylist() == [4.755]
    assert columns["p % n"].to_pylist() == [Decimal("2.01"), Decimal("7.50"), None]
    assert columns["sum_(p)"].to_pylist() == [Decimal("9.51")]
