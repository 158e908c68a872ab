"""PIVOT and UNPIVOT: names and rows are DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from engine import Environment, PlanError
from tests.sql.conftest import rows_of

ROWS = pa.table(
    {
        "k": [1, 1, 2, 2, 3, None],
        "s": ["a", "b", "a", None, "c", "a"],
        "v": [10, 20, 30, 40, None, 5],
        "z": ["x", "x", "y", "y", "x", "x"],
    }
)
QUERIES = (
    "PIVOT t ON s USING sum(v)",
    "PIVOT t ON s USING sum(v) GROUP BY k",
    "PIVOT t ON s USING sum(v) AS x, max(v) GROUP BY z",
    "PIVOT t ON s IN ('a', 'b', 'zz') USING sum(v) + 1 AS x GROUP BY z",
    "PIVOT t ON s, z USING sum(v) GROUP BY k",
    "PIVOT t ON s || z USING count(*) GROUP BY k",
    "PIVOT t ON v > 15 USING count(*) GROUP BY z",
    "PIVOT t ON s GROUP BY z",
    "PIVOT t ON k USING max(v) GROUP BY z ORDER BY z LIMIT 1",
    "PIVOT (SELECT z, s FROM t WHERE k > 1) ON s",
    "SELECT * FROM (PIVOT t ON s USING sum(v) GROUP BY z) AS p WHERE z = 'x'",
    "WITH p AS (PIVOT t ON s USING sum(v) GROUP BY z) SELECT * FROM p JOIN t USING (z)",
    "SELECT * FROM t PIVOT (sum(v) AS x, count(*) AS c FOR s IN ('a' AS aa, 'b')) AS p",
    "SELECT * FROM t PIVOT (sum(v) FOR s IN ('a', 'b') z IN ('x', 'y') GROUP BY k)",
    "SELECT * FROM t PIVOT (sum(v) FOR (s, z) IN (('a', 'x'), ('b', 'x')) GROUP BY k)",
    "SELECT * FROM t PIVOT (count(*) FOR s IN ('a', NULL AS none) GROUP BY k)",
    "SELECT p.aa FROM t AS q PIVOT (sum(v) FOR s IN ('a' AS aa)) AS p (one, aa)",
    "FROM (SELECT * FROM t) PIVOT (sum(v) FILTER (WHERE k > 1) FOR s IN ('a', 'b'))",
    "UNPIVOT t ON k, v",
    "UNPIVOT t ON k, v INTO NAME n VALUE x",
    "UNPIVOT t ON k + 1 AS k1, v",
    "UNPIVOT t ON COLUMNS('^[kv]') INTO NAME n VALUE x",
    "UNPIVOT t ON COLUMNS(* EXCLUDE (s, z)) INTO NAME n VALUE x",
    "UNPIVOT t ON (k, v) AS kv, (v, k) INTO NAME n VALUE x, y",
    "FROM t UNPIVOT INCLUDE NULLS (x FOR n IN (k, v))",
    "FROM t UNPIVOT (x FOR n IN (k AS 'K', v AS vv))",
    "SELECT n, sum(x) AS x FROM t UNPIVOT ((x, y) FOR n IN ((k, v), (v, k))) AS u GROUP BY n",
)
WRONG = {
    "PIVOT t ON s USING v": "line 1, column 20: PIVOT takes aggregates, as in USING sum(v)",
    "PIVOT t ON nothing USING sum(v)": "line 1, column 12: no column nothing",
    "PIVOT t USING sum(v)": "line 1, column 9: expected: ON",
    "PIVOT t ON (s, z) IN ('a') USING sum(v)": "1 values for 2 columns of PIVOT",
    "UNPIVOT t ON k, s": "UNPIVOT of columns of BIGINT and VARCHAR; cast them to one type",
    "UNPIVOT t ON (k, v) INTO NAME n VALUE x": "UNPIVOT of 2 columns into 1; name as many values",
}


@pytest.fixture(scope="module")
def environment(nothing_is_left_by_the_module: None) -> Iterator[Environment]:
    with Environment(config={"parallelism.default": 2}) as made:
        made.register("t", made.from_arrow(ROWS))
        yield made


@pytest.mark.parametrize("query", QUERIES)
def test_names_and_rows_are_those_of_duckdb(environment: Environment, query: str) -> None:
    found = environment.sql(query).to_arrow()
    with duckdb.connect() as connection:
        connection.register("t", ROWS)
        wanted = connection.sql(query)
        assert found.column_names == wanted.columns
        rows = [tuple(int(one) if isinstance(one, Decimal) else one for one in row) for row in wanted.fetchall()]
    found_rows = [tuple(int(one) if isinstance(one, Decimal) else one for one in row) for row in rows_of(found)]
    assert sorted(found_rows, key=repr) == sorted(rows, key=repr)


@pytest.mark.parametrize("query", WRONG)
def test_what_is_wrong_is_said(environment: Environment, query: str) -> None:
    with pytest.raises(PlanError) as raised:
        environment.sql(query)
    assert WRONG[query] in str(raised.value)


def test_a_pivot_of_many_values_says_what_to_write(environment: Environment) -> None:
    numbers = pa.table({"n": list(range(1_001)), "v": [1] * 1_001})
    environment.register("many", environment.from_arrow(numbers))
    with pytest.raises(PlanError, match="more than 1,000 different values"):
        environment.sql("PIVOT many ON n USING sum(v)")
