"""Names of the list of SELECT in GROUP BY, values of rows by their places, and words that may not be passed over."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from engine import EngineError, Environment

TABLE = pa.table({"id": [1, 2, 3, 4], "a": [2, None, 1, 2], "s": ["x", "y", None, "x"]})
QUERIES = (
    "SELECT a + 1 AS m, count(*) AS n FROM t GROUP BY m",
    "SELECT upper(s) AS g, sum(a) FROM t GROUP BY g HAVING g = 'X'",
    "SELECT CASE WHEN a > 1 THEN 'hi' ELSE 'lo' END AS g, count(*) FROM t GROUP BY ROLLUP (g)",
    "SELECT a + 1 AS x, (a + 1) * 2 AS m, count(*) AS n FROM t GROUP BY x, m",
    "SELECT id % 2 AS k, a + 1 AS m, count(*) FROM t GROUP BY (k, m)",
    "SELECT a, (SELECT count(*) FROM t AS u WHERE u.a = t.a) AS c, count(*) FROM t GROUP BY a, c",
    "SELECT a, count(*) FROM t GROUP BY a WITH ROLLUP",
    "SELECT s AS id, count(*) FROM t GROUP BY s",
)


@pytest.mark.parametrize("query", QUERIES)
def test_a_name_in_group_by_is_the_expression(environment: Environment, query: str) -> None:
    environment.register("t", environment.from_arrow(TABLE))
    with duckdb.connect() as oracle:
        oracle.register("t", TABLE)
        wanted = oracle.execute(query.replace("a WITH ROLLUP", "ROLLUP (a)")).fetchall()
    found = environment.sql(query).collect()
    assert sorted(map(tuple, found), key=repr) == sorted(map(tuple, wanted), key=repr)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("row(1, 'x')::STRUCT(a INT, b VARCHAR)", {"a": 1, "b": "x"}),
        ("row(1, 2)::STRUCT(a VARCHAR, b DOUBLE)", {"a": "1", "b": 2.0}),
        ("{'a': 1, 'b': 2}::STRUCT(b BIGINT, a VARCHAR)", {"b": 2, "a": "1"}),
    ],
)
def test_rows_become_structs_by_their_places(environment: Environment, expression: str, value: Any) -> None:
    assert environment.sql(f"SELECT {expression} AS v").to_arrow()["v"].to_pylist() == [value]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT {'a': 1}::STRUCT(b INT) AS v", "a struct of a as one of b"),
        ("SELECT [row(1, 'x')]::STRUCT(a INT, b VARCHAR)[] AS v", "a struct of c0, c1 as one of a, b"),
        ("SELECT id FROM t LIMIT 50%", "LIMIT of a share of the rows"),
        ("SELECT id FROM t LIMIT 25 PERCENT", "LIMIT of a share of the rows"),
        ("SELECT ARRAY(SELECT id FROM t) AS v", r"ARRAY\(SELECT ...\).*list\(x\)"),
        ("SELECT unnest([[1]], max_depth := 2) AS v", r"column 22: unnest\(\) takes its arguments by their places"),
        ("SELECT round(a => 1.5) AS v", r"round\(\) takes its arguments by their places"),
        ("SELECT COLUMNS('a') AS b FROM t", r"COLUMNS\(...\) AS a name"),
        ("SELECT a FROM t GROUP BY a WITH TOTALS", "WITH TOTALS"),
    ],
)
def test_nothing_that_is_written_is_passed_over(environment: Environment, query: str, said: str) -> None:
    environment.register("t", environment.from_arrow(TABLE))
    with pytest.raises(EngineError, match=said):
        environment.sql(query)
