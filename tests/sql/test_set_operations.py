"""INTERSECT ALL and EXCEPT ALL: rows and how often each is there are DuckDB's."""

import random

import duckdb
import pyarrow as pa
import pytest

from engine import Environment
from engine.errors import PlanError
from tests.sql.conftest import Answers

pytestmark = [pytest.mark.integration, pytest.mark.quick]


def rows(seed, count):
    chosen = random.Random(seed)
    return pa.table(
        {
            "k": pa.array([chosen.choice([1, 2, 3, None]) for _ in range(count)], pa.int64()),
            "s": pa.array([chosen.choice(["a", "b", None]) for _ in range(count)], pa.string()),
            "x": pa.array([chosen.choice([0.5, 1.5, None]) for _ in range(count)], pa.float64()),
        }
    )


TABLES = {"t": rows(1, 60), "u": rows(2, 40), "w": rows(3, 25), "none": rows(4, 0)}
QUERIES = (
    "SELECT k, s FROM t INTERSECT ALL SELECT k, s FROM u",
    "SELECT k, s FROM t EXCEPT ALL SELECT k, s FROM u",
    "SELECT k FROM t EXCEPT /* one by one */ ALL SELECT k FROM u",
    "SELECT * FROM t INTERSECT ALL SELECT * FROM u",
    "SELECT * FROM t EXCEPT ALL SELECT * FROM none",
    "SELECT * FROM none INTERSECT ALL SELECT * FROM t",
    "SELECT k FROM t EXCEPT ALL SELECT k FROM u EXCEPT ALL SELECT k FROM w",
    "SELECT k FROM t EXCEPT ALL (SELECT k FROM u INTERSECT ALL SELECT k FROM w)",
    "SELECT k FROM t UNION ALL SELECT k FROM u EXCEPT ALL SELECT k FROM w",
    "SELECT k, count(*) AS n FROM (SELECT k, s FROM t INTERSECT ALL SELECT k, s FROM u) AS q GROUP BY k",
    "SELECT s FROM (SELECT k, s FROM t EXCEPT ALL SELECT k, s FROM u) AS q WHERE k > 1",
    "SELECT DISTINCT k FROM (SELECT k, s FROM t EXCEPT ALL SELECT k, s FROM u) AS q",
    "SELECT q.k, w.s FROM (SELECT k FROM t EXCEPT ALL SELECT k FROM u) AS q JOIN w ON q.k = w.k",
    "SELECT k + 1 AS a, upper(s) AS b FROM t INTERSECT ALL SELECT k, upper(s) FROM u",
    "SELECT k FROM t WHERE k > 1 EXCEPT ALL SELECT k FROM u WHERE s = 'a' ORDER BY 1 LIMIT 3",
    "WITH q AS (SELECT k FROM t EXCEPT ALL SELECT k FROM u) SELECT count(*) AS n FROM q, q AS r",
    "SELECT k, 1 AS one FROM t INTERSECT ALL SELECT k, 1 FROM u",
)


@pytest.fixture(scope="module")
def env():
    with Environment(config={"parallelism.default": 2}) as made:
        for name, table in TABLES.items():
            made.register(name, made.from_arrow(table))
        yield made


@pytest.mark.parametrize("text", QUERIES)
def test_rows_and_how_often_they_come_are_duckdbs(env, text):
    with duckdb.connect() as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        expected = connection.sql(text).to_arrow_table()
    found = env.sql(text).to_arrow()
    assert found.schema.names == expected.schema.names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM t EXCEPT ALL SELECT k FROM u INTERSECT SELECT k FROM w",
        "SELECT k FROM t WHERE k IN (SELECT k FROM w) EXCEPT ALL SELECT k FROM u",
        "SELECT k FROM t LEFT ANTI JOIN w ON t.k = w.k EXCEPT ALL SELECT k FROM u",
        "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM w WHERE w.k = t.k) INTERSECT ALL SELECT k FROM u",
    ],
)
def test_other_joins_may_stand_beside_them(env, text):
    with duckdb.connect() as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        expected = connection.sql(text.replace("LEFT ANTI", "ANTI")).to_arrow_table()
    assert sorted(map(repr, env.sql(text).to_arrow().to_pylist())) == sorted(map(repr, expected.to_pylist()))


@pytest.mark.parametrize("operation", ["INTERSECT ALL", "EXCEPT ALL"])
@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("k, [k] AS l", "'l' is list<item: int64>, which cannot be compared"),
        ("l, k", "'l' is list<item: int64>, which cannot be compared"),
    ],
)
def test_a_column_that_cannot_be_compared_is_named(env, operation, columns, said):
    lists = env.from_arrow(pa.table({"k": [1, 2], "l": [[1], [2, 3]]}))
    env.register("lists", lists)
    with pytest.raises(PlanError) as error:
        env.sql(f"SELECT {columns} FROM lists {operation} SELECT {columns} FROM lists")
    assert operation.split()[0] in str(error.value) and said in str(error.value)


def test_a_filter_asks_for_one_branch_of_a_union(answers: Answers) -> None:
    both = "SELECT k, sum(v) AS n, 't' AS kind FROM t GROUP BY k UNION ALL SELECT k, sum(w), 'u' FROM u GROUP BY k"
    for condition in ("kind = 't'", "kind = 'none'", "kind <> 't' AND n > 0"):
        found, wanted = answers(f"WITH x AS ({both}) SELECT k, n, kind FROM x WHERE {condition}")
        assert found == wanted
        found, wanted = answers(
            f"WITH x AS ({both}) SELECT t.k, one.n FROM t LEFT JOIN (SELECT * FROM x WHERE {condition}) AS one"
            " ON t.k = one.k"
        )
        assert found == wanted
