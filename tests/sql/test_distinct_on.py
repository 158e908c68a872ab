"""DISTINCT ON: of each group the first row of an order, as DuckDB has it."""

import random

import duckdb
import pyarrow as pa
import pytest

from engine import Environment

pytestmark = [pytest.mark.integration, pytest.mark.quick]

_chosen = random.Random(3)
T = pa.table(
    {
        "id": list(range(300)),
        "k": pa.array([_chosen.choice([1, 2, 3, None]) for _ in range(300)], pa.int64()),
        "s": pa.array([_chosen.choice(["a", "b", None]) for _ in range(300)], pa.string()),
        "x": pa.array([_chosen.choice([None, *range(9)]) for _ in range(300)], pa.int64()),
    }
)
QUERIES = (
    "SELECT DISTINCT ON (k) k, id, s, x FROM t ORDER BY k NULLS LAST, id",
    "SELECT DISTINCT ON (k) s, x + 1 AS y FROM t ORDER BY k NULLS LAST, x DESC NULLS LAST, id",
    "SELECT DISTINCT ON (k, s) * FROM t ORDER BY k NULLS LAST, s NULLS FIRST, x NULLS FIRST, id DESC",
    "SELECT DISTINCT ON (k) k, id FROM t WHERE x > 3 ORDER BY k NULLS LAST, id DESC LIMIT 2",
    "SELECT k, count(*) AS n FROM (SELECT DISTINCT ON (k, x) k, x, id FROM t ORDER BY k, x, id) AS q GROUP BY k",
    "SELECT q.k, t.s FROM (SELECT DISTINCT ON (k) k, id FROM t ORDER BY k, id) AS q JOIN t ON t.id = q.id",
    "SELECT DISTINCT ON (upper(s)) upper(s) AS u, id FROM t ORDER BY upper(s) NULLS LAST, id",
    "SELECT DISTINCT ON (s) s FROM t",
    "SELECT DISTINCT ON (k) k, id FROM t WHERE id < 0 ORDER BY k, id",
)


@pytest.fixture(scope="module")
def env():
    with Environment(config={"parallelism.default": 2}) as made:
        made.register("t", made.from_arrow(T))
        yield made


@pytest.mark.parametrize("text", QUERIES)
def test_the_first_row_of_each_group_is_duckdbs(env, text):
    with duckdb.connect() as connection:
        connection.register("t", T)
        expected = connection.sql(text).to_arrow_table()
    found = env.sql(text).to_arrow()
    assert found.schema.names == expected.schema.names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))
