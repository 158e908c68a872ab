"""TPC-DS at a small scale: the answers of all 103 statements are DuckDB's, with five subtasks in little memory, and of
every third (``make torture``: of all) with one. At scale factor 1 ``make bench W=tpcds`` compares them.
"""

import duckdb
import pytest

from tests.sampling import IS_TORTURE
from tests.tpcds.queries import QUERIES, for_duckdb
from tests.tpcds.tables import generate, views
from tests.tpch.answers import difference

#: taken by every run: grouping sets, windows, a query as a value, EXISTS below OR, INTERSECT, a full join
FEW = ("5", "6", "10", "12", "14b", "51", "97")
MODES = {
    "plain": {},
    "one subtask": {"parallelism.default": 1},
    "five subtasks in 64mb": {"parallelism.default": 5, "taskmanager.memory.process.size": "64mb"},
}
ALL = [
    *(pytest.param(name, "plain", marks=pytest.mark.quick) for name in FEW),
    *((name, "one subtask") for name in list(QUERIES)[:: 1 if IS_TORTURE else 3]),
    *((name, "five subtasks in 64mb") for name in QUERIES),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tpcds")
    generate(made, 0.01)
    return made


@pytest.fixture(scope="module")
def oracle(folder):
    """Return a function: name of a statement -> DuckDB's answer."""
    answers = {}
    with duckdb.connect() as connection:
        connection.execute(views(folder))
        connection.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")

        def answer(name):
            if name not in answers:
                answers[name] = connection.sql(for_duckdb(name)).to_arrow_table()
            return answers[name]

        yield answer


@pytest.mark.parametrize(("name", "mode"), ALL)
def test_the_answer_is_duckdbs(open_environment, folder, oracle, name, mode):
    environment = open_environment(**MODES[mode])
    for path in folder.glob("*.parquet"):
        if path.stem not in environment.tables:
            environment.register(path.stem, environment.read_parquet(path))
    assert difference(environment.sql(QUERIES[name]).to_arrow(), oracle(name)) == ""


def test_two_thirds_of_the_statements_have_an_answer_at_this_scale(oracle):
    answered = [name for name in QUERIES if any(value for row in oracle(name).to_pylist() for value in row.values())]
    assert len(answered) >= 65


@pytest.mark.quick
def test_there_are_103_statements_of_99_queries():
    assert len(QUERIES) == 103
    assert {name.rstrip("ab") for name in QUERIES} == {str(number) for number in range(1, 100)}
