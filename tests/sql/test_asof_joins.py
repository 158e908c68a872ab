"""ASOF JOIN: rows are DuckDB's, for all comparisons, with equalities, USING, and keys and times that are null."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from engine import Environment
from tests.sql.conftest import rows_of

_CHOSEN = random.Random(3)
TRADES = pa.table(
    {
        "k": [_CHOSEN.choice(["a", "b", None]) for _ in range(40)],
        "ts": [_CHOSEN.choice([None, *range(30)]) for _ in range(40)],
        "n": list(range(40)),
    }
)
QUOTES = pa.table(
    {
        "k": [_CHOSEN.choice(["a", "b", None]) for _ in range(30)],
        "ts": [one / 6 for one in _CHOSEN.sample(range(200), 30)],
        "p": list(range(30)),
    }
)
QUERIES = (
    "SELECT n, p FROM t ASOF JOIN u ON t.k = u.k AND t.ts >= u.ts",
    "SELECT n, p FROM t ASOF LEFT JOIN u ON t.k = u.k AND t.ts > u.ts",
    "SELECT n, p FROM t ASOF LEFT JOIN u ON u.ts >= t.ts AND t.k = u.k",
    "SELECT n, p FROM t ASOF JOIN u ON t.ts < u.ts",
    "SELECT * FROM t ASOF JOIN u USING (k, ts)",
    "SELECT k, ts, n, p FROM t ASOF LEFT JOIN u USING (k, ts) WHERE n > 5",
    "SELECT a.n, u.p, v.p AS q FROM t AS a ASOF JOIN u ON a.ts >= u.ts ASOF LEFT JOIN u AS v ON a.ts <= v.ts",
    "SELECT t.n, (SELECT max(p) FROM t x ASOF JOIN u ON x.ts >= u.ts WHERE x.k = t.k) AS m FROM t",
)


@pytest.fixture(scope="module")
def environment(nothing_is_left_by_the_module: None) -> Iterator[Environment]:
    with Environment(config={"parallelism.default": 2}) as made:
        made.register("t", made.from_arrow(TRADES))
        made.register("u", made.from_arrow(QUOTES))
        yield made


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_duckdb(environment: Environment, query: str) -> None:
    with duckdb.connect() as connection:
        connection.register("t", TRADES)
        connection.register("u", QUOTES)
        wanted = connection.sql(query)
        found = environment.sql(query).to_arrow()
        assert found.column_names == wanted.columns
        assert rows_of(found) == sorted(wanted.fetchall(), key=repr)
