"""unnest() in FROM and in lists of SELECT: the rows are DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from engine import Environment, NotYetSupportedError
from tests.sql.conftest import rows_of

LISTS = pa.table(
    {
        "k": [1, 2, 3, 4, 5],
        "l": pa.array([[1, 2, 2], [None, 3], [], None, [7]], pa.list_(pa.int64())),
        "w": pa.array([["a", "b"], None, ["c"], [], [None]], pa.list_(pa.string())),
        "s": ["a b", "", None, "c", "d e f"],
    }
)
OTHERS = pa.table({"k": [1, 2, 2, 9], "v": ["p", "q", "r", "z"]})
QUERIES = (
    "SELECT unnest(l) FROM lists",
    "SELECT k, unnest(l) AS x FROM lists WHERE k < 3",
    "SELECT k, unnest(l) + 1 AS x FROM lists ORDER BY k, x",
    "SELECT DISTINCT unnest(l) AS x FROM lists",
    "SELECT count(*) AS c FROM (SELECT unnest(l) FROM lists)",
    "SELECT * FROM (SELECT k, unnest(l) AS x FROM lists) WHERE x > 1",
    "SELECT lists.k, v, unnest(l) AS x FROM lists JOIN others ON lists.k = others.k",
    "SELECT lists.k, v, unnest(l) AS x FROM lists, others WHERE lists.k = others.k",
    "SELECT max(x) FROM (SELECT unnest(l) AS x FROM lists)",
    "SELECT k, unnest(string_split(s, ' ')) AS word FROM lists",
    "SELECT unnest([1, 2]) + 1 AS z",
    "SELECT k, unnest(['x', 'y']) AS c FROM others",
    "SELECT k, x FROM lists, unnest(l) AS q(x)",
    "SELECT k, q.x + 1 AS y FROM lists CROSS JOIN unnest(l) AS q(x) WHERE x > 1 OR x IS NULL ORDER BY k, y",
    "SELECT k, x FROM lists CROSS JOIN LATERAL unnest(l) q(x)",
    "SELECT k, x FROM lists LEFT JOIN unnest(l) AS q(x) ON TRUE",
    "SELECT v, lists.*, x FROM others, lists, unnest(l) AS q(x) WHERE others.k = lists.k",
    "SELECT k, x, y FROM lists, unnest(l) AS q(x), unnest(w) AS r(y)",
    "SELECT x, count(*) AS c, sum(k) AS t FROM lists, unnest(l) AS q(x) GROUP BY x HAVING count(*) > 0",
    "SELECT word, count(*) AS c FROM lists, unnest(string_split(s, ' ')) AS q(word) GROUP BY word",
    "SELECT * FROM unnest([1, NULL, 3]) AS q(x) WHERE x > 1 OR x IS NULL",
    "SELECT x, y FROM unnest([1, 2]) AS a(x), unnest(['p', 'q']) AS b(y)",
    "SELECT unnest FROM unnest([3, 4])",
    "WITH e AS (SELECT k, unnest(l) AS x FROM lists) SELECT e.x, v FROM e LEFT JOIN others ON e.x = others.k",
    "SELECT k FROM others WHERE k IN (SELECT unnest(l) FROM lists)",
    "SELECT k, s, l, x FROM (SELECT * EXCLUDE (w) FROM lists), unnest(l) AS q(x)",
    "SELECT k, x, n FROM lists, unnest(l) WITH ORDINALITY AS q(x, n)",
    "SELECT k, x, row_number() OVER (PARTITION BY k ORDER BY x) AS n FROM lists, unnest(l) AS q(x) WHERE k = 1",
    "SELECT a.x FROM unnest([1, 2]) AS a(x) UNION ALL SELECT unnest([3])",
    "SELECT k, unnest(l) AS x, unnest(w) AS y FROM lists",
    "SELECT unnest([1, 2, 3]) AS x, unnest(['a']) AS y, unnest([NULL, 2.5]) AS z",
    "SELECT unnest(l) + len(unnest(w)) AS x FROM lists WHERE k <> 2",
)
REFUSED = {
    "SELECT k, unnest(l), count(*) FROM lists GROUP BY k, l": "beside GROUP BY",
    "SELECT k FROM lists WHERE unnest(l) = 1": "in WHERE",
    "SELECT k, x FROM lists LEFT JOIN unnest(l) AS q(x) ON x > 1": "ON a condition",
}


@pytest.fixture
def both(environment: Environment) -> Iterator[tuple[Environment, duckdb.DuckDBPyConnection]]:
    environment.register("lists", environment.from_arrow(LISTS))
    environment.register("others", environment.from_arrow(OTHERS))
    with duckdb.connect() as oracle:
        oracle.register("lists", LISTS)
        oracle.register("others", OTHERS)
        yield environment, oracle


@pytest.mark.parametrize("query", QUERIES)
def test_the_rows_are_duckdbs(both: tuple[Environment, duckdb.DuckDBPyConnection], query: str) -> None:
    environment, oracle = both
    found, wanted = environment.sql(query), oracle.sql(query)
    assert rows_of(found.to_arrow()) == sorted(wanted.fetchall(), key=repr)
    assert found.columns == wanted.columns


@pytest.mark.parametrize("query", REFUSED)
def test_other_forms_are_refused_by_name(both: tuple[Environment, duckdb.DuckDBPyConnection], query: str) -> None:
    with pytest.raises(NotYetSupportedError, match=REFUSED[query]):
        both[0].sql(query)


def test_the_list_itself_is_not_carried_beside_its_elements(environment: Environment) -> None:
    environment.register("lists", environment.from_arrow(LISTS))
    plan = environment.sql("SELECT k, x FROM lists, unnest(l) AS q(x)").explain()
    assert "explode" in plan and "get(" not in plan
