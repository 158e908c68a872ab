"""WITH RECURSIVE: rows are DuckDB's, rounds end or say that they do not, and a round's rows are stored, not held."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from engine import Environment, NotYetSupportedError, PlanError
from tests.sql.conftest import rows_of

EDGES = pa.table({"a": [1, 2, 3, 4, 1, None, 7], "b": [2, 3, 4, 2, 5, 7, None]})
PARTS = pa.table({"part": ["car", "car", "axle", "axle"], "of": ["axle", "seat", "wheel", "nut"], "n": [2, 5, 2, 8]})
QUERIES = (
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 8) SELECT sum(n) AS s FROM t",
    "WITH RECURSIVE r AS (SELECT a, b FROM edges UNION SELECT r.a, e.b FROM r JOIN edges e ON r.b = e.a)"
    " SELECT * FROM r",
    "WITH RECURSIVE r(x, d) AS (SELECT 1, 0 UNION ALL SELECT e.b, d + 1 FROM r JOIN edges e ON r.x = e.a WHERE d < 6)"
    " SELECT x, count(*) AS c, max(d) AS d FROM r GROUP BY x",
    "WITH RECURSIVE p(part, n) AS (SELECT 'car', 1 UNION ALL SELECT q.of, p.n * q.n FROM p JOIN parts q"
    " ON q.part = p.part) SELECT part, sum(n) AS n FROM p GROUP BY part",
    "WITH RECURSIVE t(s) AS (SELECT 'a' UNION ALL SELECT s || 'b' FROM t WHERE length(s) < 5)"
    " SELECT s, (SELECT count(*) FROM t u WHERE u.s < t.s) AS c FROM t",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3),"
    " u(m) AS (SELECT n FROM t UNION ALL SELECT m * 2 FROM u WHERE m < 10) SELECT m FROM u",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL (WITH RECURSIVE u(m) AS (SELECT n FROM t UNION ALL SELECT m + 1 FROM u"
    " WHERE m < 4) SELECT max(m) + 1 FROM u HAVING max(m) < 8)) SELECT n FROM t",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < (SELECT max(a) FROM edges))"
    " SELECT n FROM t WHERE n IN (SELECT n + 2 FROM t)",
    "WITH RECURSIVE t(n) AS (SELECT 1.00 UNION ALL SELECT n * 1.13 + 1 FROM t WHERE n < 4) SELECT n FROM t",
    "WITH RECURSIVE t AS (SELECT a FROM edges WHERE a > 100 UNION ALL SELECT a + 1 FROM t) SELECT * FROM t",
    "WITH RECURSIVE t AS (SELECT 1 AS n) SELECT n FROM t",
)
WRONG = {
    "WITH RECURSIVE t(n) AS (SELECT n FROM t) SELECT n FROM t": "column 16: WITH RECURSIVE t: its form is: a query",
    "WITH RECURSIVE t(n) AS (SELECT n FROM t UNION ALL SELECT 1) SELECT n FROM t": "t: its form is: a query",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n || 'a' FROM t) SELECT n FROM t": (
        "column n is int64 in the first part and string in the second; cast one of them"
    ),
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n, 2 FROM t) SELECT n FROM t": "its parts have 1 and 2 columns",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n FROM t LIMIT 3) SELECT n FROM t": (
        "ORDER BY and LIMIT stand in the query that uses it"
    ),
}
ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n FROM t) SELECT n FROM t"


@pytest.fixture(scope="module")
def environment(nothing_is_left_by_the_module: None) -> Iterator[Environment]:
    with Environment(config={"parallelism.default": 2, "sql.recursion.rounds-max": 15}) as made:
        made.register("edges", made.from_arrow(EDGES))
        made.register("parts", made.from_arrow(PARTS))
        yield made


def duck(query: str, **tables: pa.Table) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return sorted(connection.sql(query).fetchall(), key=repr)


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_duckdb(environment: Environment, query: str) -> None:
    assert rows_of(environment.sql(query).to_arrow()) == duck(query, edges=EDGES, parts=PARTS)


@pytest.mark.parametrize("query", WRONG)
def test_what_is_wrong_is_said(environment: Environment, query: str) -> None:
    with pytest.raises(PlanError, match=WRONG[query].replace("[", r"\[").replace("(", r"\(")):
        environment.sql(query)


def test_rounds_that_do_not_end_are_an_error_which_names_the_option(environment: Environment) -> None:
    query = environment.sql(ENDLESS)
    with pytest.raises(PlanError, match=r"WITH RECURSIVE t: round 16 still makes rows \(1\); UNION .*rounds-max"):
        query.collect()
    assert [path.name for path in environment.temporary_folder().glob("cache-*/round-16")] == []


def test_an_integer_beside_a_decimal_makes_decimals(environment: Environment) -> None:
    query = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 0.5 FROM t WHERE n < 2) SELECT n FROM t"
    assert [float(row.n) for row in environment.sql(query).collect()] == [1, 1.5, 2]


def test_rows_that_depend_on_rows_outside_are_refused_by_name(environment: Environment) -> None:
    inner = "WITH RECURSIVE t(n) AS (SELECT e.a UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT sum(n) FROM t"
    query = f"SELECT ({inner}) FROM edges e"
    with pytest.raises(
        NotYetSupportedError, match="line 1, column 24: WITH RECURSIVE t, which looks at columns outside"
    ):
        environment.sql(query)


def test_nothing_runs_before_rows_are_needed_and_then_once_for_all_threads(environment: Environment) -> None:
    query = environment.sql(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 4) SELECT n FROM t"
    )
    before = set(environment.temporary_folder().glob("cache-*"))
    assert "recursion t" in query.explain()
    assert set(environment.temporary_folder().glob("cache-*")) == before
    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append([row.n for row in query.collect()])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[1, 2, 3, 4]] * 3
    assert len(set(environment.temporary_folder().glob("cache-*")) - before) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(6))
def test_closures_of_random_graphs_are_those_of_duckdb(environment: Environment, seed: int) -> None:
    chosen = random.Random(seed)
    count = 30
    edges = [(chosen.randrange(count), chosen.randrange(count)) for _ in range(50)]
    table = pa.table({"a": [a for a, _ in edges], "b": [b for _, b in edges]})
    query = (
        "WITH RECURSIVE r AS (SELECT a, b FROM g UNION SELECT r.a, g.b FROM r, g WHERE r.b = g.a) SELECT a, b FROM r"
    )
    environment.register("g", environment.from_arrow(table))
    assert rows_of(environment.sql(query).to_arrow()) == duck(query, g=table)
