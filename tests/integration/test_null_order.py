"""Where nulls go in everything that has an order: what the guide's table says is what runs, on every path."""

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from engine import Environment, SchemaError
from tests.integration.null_order import CASES, ROWS, calls_of_the_guide, engines_of_the_guide


@pytest.fixture
def data(any_environment):
    return any_environment.from_arrow(pa.table(ROWS)).rebalance()


def test_every_row_of_the_table_has_a_case():
    assert calls_of_the_guide() == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_nulls_go_where_the_table_says(data, any_environment, tmp_path, name):
    CASES[name](data, any_environment, tmp_path / "out")


def test_flags_of_an_order_fit_its_keys(data):
    with pytest.raises(SchemaError, match="nulls_last=None"):
        data.drop_duplicates("k", order_by="v", nulls_last=None)
    with pytest.raises(SchemaError, match="one for each of "):
        data.drop_duplicates("k", order_by="v", nulls_last=[True, False])


def shown(values):
    return "first" if values[0] is None else "last"


def test_other_engines_order_nulls_as_the_table_says():
    engines = engines_of_the_guide()
    values = pa.table({"v": ROWS["v"]})
    with duckdb.connect() as connection:
        connection.register("t", values)
        queries = ("SELECT v FROM t ORDER BY v", "SELECT v FROM t ORDER BY v DESC")
        assert engines["DuckDB"] == tuple(shown(connection.sql(query).fetchnumpy()["v"].tolist()) for query in queries)
        with Environment() as env:
            env.register("t", env.from_arrow(values))
            found = [[row.v for row in env.sql(query).collect()] for query in queries]
            assert engines["Drey's SQL"] == tuple(map(shown, found))
    frame = pl.from_arrow(values)
    found = [frame.sort("v", descending=descending)["v"].to_list() for descending in (False, True)]
    assert engines["Polars"] == engines["Drey"] == tuple(map(shown, found))
