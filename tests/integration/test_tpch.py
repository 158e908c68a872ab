"""The 22 queries of TPC-H at a small scale: Drey's answers are DuckDB's, with memory and without, in all modes."""

import duckdb
import pytest

from tests.tpch import queries, sql_queries
from tests.tpch.answers import difference
from tests.tpch.tables import write_small

#: taken by every run: one group, a correlated subquery, three uses of a table
FEW = (1, 2, 17, 21)
MODES = {
    "pipelined": {},
    "batch": {"execution.mode": "BATCH", "parallelism.default": 3},
    "spilling": {"debug.force-spill": True},
    "64mb": {"taskmanager.memory.process.size": "64mb"},
}
ALL = [
    pytest.param(number, mode, marks=[pytest.mark.quick] if number in FEW and mode == "pipelined" else [])
    for mode in MODES
    for number in queries.QUERIES
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tpch") / "small"
    write_small(made)
    return made


@pytest.fixture(scope="module")
def oracle(folder):
    """Return a function: number of a query -> DuckDB's answer."""
    answers = {}
    with duckdb.connect() as connection:
        connection.execute(sql_queries.views(folder))

        def answer(number):
            if number not in answers:
                answers[number] = connection.sql(sql_queries.QUERIES[number]).to_arrow_table()
            return answers[number]

        yield answer


@pytest.mark.parametrize(("number", "mode"), ALL)
def test_the_answer_is_duckdbs(open_environment, folder, oracle, number, mode):
    environment = open_environment(**MODES[mode])
    answer = queries.QUERIES[number](queries.read_tables(environment, folder)).to_arrow()
    assert difference(answer, oracle(number)) == ""


@pytest.mark.parametrize("number", queries.QUERIES)
def test_polars_is_asked_the_same(folder, oracle, number):
    polars_queries = pytest.importorskip("tests.tpch.polars_queries")
    answer = polars_queries.QUERIES[number](polars_queries.read_tables(folder)).collect().to_arrow()
    assert difference(answer, oracle(number)) == ""


@pytest.mark.parametrize("number", queries.QUERIES)
def test_every_query_has_an_answer_to_compare(oracle, number):
    assert any(value for row in oracle(number).to_pylist() for value in row.values())


@pytest.mark.quick
def test_a_wrong_answer_is_noticed(oracle):
    wanted = oracle(1)
    changed = wanted.set_column(2, "sum_qty", [[value.as_py() + 1 for value in wanted.column("sum_qty")]])
    assert difference(wanted, wanted) == ""
    assert "rows of" in difference(wanted.slice(1), wanted)
    assert ", not (" in difference(changed, wanted)
