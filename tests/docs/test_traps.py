"""Each value of the table of traps is what its library gives."""

import pytest

from docs.generators.trap_rows import ROWS, trap_page
from tests.docs.trap_values import libraries
from tests.spark.conftest import spark

__all__ = ["spark"]


def _wrong(opened, names):
    cells = [(row.what, name, getattr(row, name)) for row in ROWS for name in names]
    found = [(what, name, cell, opened.value(name, cell.code)) for what, name, cell in cells if cell is not None]
    return [(what, name, cell.values, value) for what, name, cell, value in found if value != cell.values]


def test_values_are_those_of_drey_polars_and_pandas():
    with libraries() as opened:
        assert _wrong(opened, ("drey", "polars", "pandas")) == []


@pytest.mark.spark
def test_values_are_those_of_spark(spark):
    with libraries(spark) as opened:
        assert _wrong(opened, ("spark",)) == []


def test_a_row_is_a_trap():
    for row in ROWS:
        others = {cell.values for cell in (row.polars, row.pandas, row.spark) if cell is not None}
        assert others != {row.drey.values}, row.what


def test_the_page_has_each_row():
    page = trap_page()
    assert all(f"| {row.what} | `{row.drey.code}`<br>`{row.drey.values}` |" in page for row in ROWS)
