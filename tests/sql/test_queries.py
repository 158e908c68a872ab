"""Whole queries: TPC-H's 22, and what is said of a text that is no query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from engine import DataError, Environment, NotYetSupportedError, PlanError, SchemaError, col
from tests.sql.conftest import Answers
from tests.sql.null_queries import TABLES
from tests.tpch import sql_queries
from tests.tpch.answers import difference
from tests.tpch.tables import write_small


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    made: Path = tmp_path_factory.mktemp("tpch") / "small"
    write_small(made)
    return made


_SETTINGS = ({"execution.mode": "BATCH"}, {"taskmanager.memory.process.size": "64mb"})


@pytest.mark.parametrize("settings", [{}, *(pytest.param(one, marks=pytest.mark.thorough) for one in _SETTINGS)])
def test_the_answers_of_tpch_are_duckdbs(folder: Path, settings: dict[str, object]) -> None:
    with duckdb.connect() as oracle, Environment(config={"parallelism.default": 2, **settings}) as environment:
        oracle.execute(sql_queries.views(folder))
        for path in folder.glob("*.parquet"):
            environment.register(path.stem, environment.read_parquet(path))
        for number, query in sql_queries.QUERIES.items():
            found = environment.sql(query).to_arrow()
            assert difference(found, oracle.sql(query).to_arrow_table()) == "", f"Q{number}"


def test_a_query_is_a_data_set_like_any_other(environment: Environment) -> None:
    large = environment.sql("SELECT k, v FROM t WHERE v >= 30")
    assert large.columns == ["k", "v"]
    assert large.filter(col("k").is_not_null()).sort("v").to_arrow().to_pydict() == {"k": [2, 3], "v": [30, 40]}
    environment.register("e", large)
    assert environment.sql("SELECT count(*) AS n FROM e").to_arrow()["n"].to_pylist() == [3]
    environment.register("e", environment.from_arrow(TABLES["e"]))
    assert "filter" in environment.sql("SELECT k FROM t WHERE v >= 30").explain()


def test_names_of_columns_are_those_of_the_query(environment: Environment) -> None:
    assert environment.sql('SELECT k AS "The Key", count(*) AS n FROM t GROUP BY k').columns == ["The Key", "n"]
    assert environment.sql("SELECT t.k, u.k, v AS k_1 FROM t JOIN u ON t.k = u.k").columns == ["k", "k_2", "k_1"]


def test_a_query_as_a_value_has_one_row_or_none(environment: Environment, answers: Answers) -> None:
    for value in ("SELECT DISTINCT w FROM u WHERE w = 1", "SELECT w FROM u WHERE w > 100", "SELECT k FROM e"):
        found, wanted = answers(f"SELECT k, ({value}) AS x, ({value}) IS NULL AS y FROM t")
        assert found == wanted
    with pytest.raises(DataError, match="a SQL query that stands for a value has more than one row"):
        environment.sql("SELECT k FROM t WHERE v > (SELECT w FROM u)").to_arrow()


def test_groups_that_a_query_uses_twice_are_made_once(environment: Environment, answers: Answers) -> None:
    groups = "WITH x AS (SELECT k, sum(v) AS total FROM t GROUP BY k)"
    query = f"{groups} SELECT a.k, a.total, b.total AS other FROM x AS a JOIN x AS b ON a.k = b.k"
    assert "(above)" in environment.sql(query).explain()
    assert "(above)" not in environment.sql("SELECT a.k FROM t AS a JOIN t AS b ON a.k = b.k").explain()
    found, wanted = answers(query)
    assert found == wanted


def test_a_text_that_is_asked_again_sees_the_tables_as_they_are(environment: Environment) -> None:
    query, found = "SELECT sum(x) AS total FROM again", []
    for values in ([1, 2], [3, 4], [0.5, 1.5]):
        environment.register("again", environment.from_arrow(pa.table({"x": values})))
        found.append(environment.sql(query))
    assert [each.collect()[0].total for each in found] == [3, 7, 2.0]
    environment.unregister("again")
    with pytest.raises(PlanError, match="no table again"):
        environment.sql(query)


def test_joins_that_a_query_uses_twice_are_done_once(environment: Environment, answers: Answers) -> None:
    joined = "WITH x AS (SELECT t.k, t.v FROM t JOIN u ON t.k = u.k AND t.v IS DISTINCT FROM u.w)"
    for query in (
        f"{joined} SELECT k FROM t WHERE k IN (SELECT k FROM x) OR v IN (SELECT v FROM x)",
        f"{joined} SELECT count(*) AS n FROM x, x AS y",
        f"{joined} SELECT x.k, y.v FROM x JOIN x AS y ON x.k = y.k WHERE x.v > 20 AND y.v IS NULL",
    ):
        found, wanted = answers(query)
        assert found == wanted


def test_not_in_and_not_exists_are_two_relations(answers: Answers) -> None:
    not_in = "SELECT count(*) AS c FROM n WHERE k NOT IN (SELECT k FROM u)"
    not_exists = "SELECT count(*) AS c FROM n WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = n.k)"
    for parts in ((not_in, not_exists), (not_exists, not_in), (not_in, not_in)):
        found, wanted = answers(" UNION ALL ".join(parts))
        assert found == wanted


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM t UNION SELECT k FROM u UNION ALL SELECT w FROM u",
        "WITH x AS (SELECT k, sum(v) AS total FROM t GROUP BY k)"
        " SELECT a.k, b.total FROM x AS a JOIN x AS b ON a.k = b.k",
        "SELECT v FROM t ORDER BY v + k DESC LIMIT 2",
        "SELECT v FROM t ORDER BY v LIMIT 0",
        "SELECT v, k, s FROM t ORDER BY v, k, s LIMIT 2 OFFSET 1",
        "SELECT v, k, s FROM t ORDER BY v DESC, k, s OFFSET 3",
        "SELECT count(*) AS n FROM (SELECT k FROM t LIMIT 2 OFFSET 1) AS x",
        "SELECT x.k FROM t AS x, LATERAL (SELECT w FROM u WHERE u.k = x.k) AS y",
        "SELECT k, (SELECT max(w) FROM u WHERE u.k = t.k) AS most FROM t",
        "SELECT count(*) AS n FROM t, u, n",
        "SELECT 1 AS one WHERE 1 > 2",
        "SELECT 1 AS one FROM (SELECT k FROM t UNION ALL SELECT v FROM t) AS x CROSS JOIN n",
    ],
)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


@pytest.mark.parametrize(
    "query", ["SELECT k, k AS k FROM t", "SELECT k, * FROM t", "SELECT k, t.*, max(v) OVER () FROM t"]
)
def test_a_column_may_be_selected_twice(answers: Answers, environment: Environment, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted
    assert environment.sql(query).columns[0] == "k"


def test_what_changes_data_is_not_there_yet(environment: Environment) -> None:
    for text in ("CREATE TABLE x AS SELECT 1", "INSERT INTO t SELECT * FROM t", ""):
        with pytest.raises((NotYetSupportedError, PlanError)):
            environment.sql(text)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT t.k FROM t LEFT JOIN u ON t.k = u.k AND t.v + u.w IN (SELECT k FROM n)", "columns of both sides"),
    ],
)
def test_what_has_no_plan_is_said_in_words(environment: Environment, query: str, said: str) -> None:
    with pytest.raises(NotYetSupportedError, match=said):
        environment.sql(query)


def test_only_data_sets_are_registered(environment: Environment) -> None:
    with pytest.raises(SchemaError, match="expected a data set"):
        environment.register("x", [1, 2])  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="expected a name"):
        environment.register("", environment.sql("SELECT 1 AS x"))
    with pytest.raises(SchemaError, match="no such name"):
        environment.unregister("nowhere")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v FROM (SELECT v, k, s FROM t ORDER BY v, k, s LIMIT 4) AS x ORDER BY v OFFSET 1",
        "SELECT v FROM (SELECT v, k, s FROM t ORDER BY v, k, s LIMIT 4 OFFSET 1) AS x ORDER BY v LIMIT 2 OFFSET 1",
        "SELECT v FROM (SELECT v, k, s FROM t ORDER BY v, k, s LIMIT 3) AS x ORDER BY v LIMIT 5 OFFSET 1",
    ],
)
def test_rows_behind_rows_that_were_counted(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


def test_values_that_are_totals_of_the_same_rows_are_computed_at_once(
    environment: Environment, answers: Answers
) -> None:
    of_large = "FROM t WHERE v > 10"
    query = (
        f"SELECT CASE WHEN (SELECT count(*) {of_large}) > 1 THEN (SELECT avg(v) {of_large})"
        f" ELSE (SELECT max(k) {of_large}) END AS x, (SELECT count(*) FROM t) AS n, (SELECT sum(v) {of_large}) AS s"
    )
    found, wanted = answers(query)
    assert found == wanted
    # all rows, large ones, and the one row that the values stand in
    assert environment.sql(query).explain().count("] arrow source") == 3


NESTED = {
    "a struct": pa.array([{"y": 1, "z": {"x": 2}}]),
    "a list of structs": pa.array([[[{"y": 5}]]]),
    "a map of structs": pa.array([[("k", {"y": 1})]], pa.map_(pa.string(), pa.struct([("y", pa.int64())]))),
}


@pytest.mark.parametrize("column", NESTED)
def test_columns_behind_nested_ones_are_those_of_their_names(environment: Environment, column: str) -> None:
    environment.register("nested", environment.from_arrow(pa.table({"c": NESTED[column], "x": [10], "y": [20]})))
    assert environment.sql("SELECT y, x FROM nested WHERE x = 10").to_arrow().to_pylist() == [{"y": 20, "x": 10}]
    assert environment.sql("SELECT * FROM nested").to_arrow().column_names == ["c", "x", "y"]
    found = environment.sql("SELECT a.x, b.y FROM nested a JOIN nested b ON a.x = b.x").to_arrow().to_pylist()
    assert found == [{"x": 10, "y": 20}]


def test_lists_of_a_fixed_size_are_lists(environment: Environment) -> None:
    pairs = pa.array([[1.0, 2.0], None], pa.list_(pa.float64(), 2))
    environment.register("pairs", environment.from_arrow(pa.table({"c": pairs, "x": [10, 20]})))
    found = environment.sql("SELECT x, c[2] AS a, length(c) AS b FROM pairs ORDER BY x").to_arrow().to_pylist()
    assert found == [{"x": 10, "a": 2.0, "b": 2}, {"x": 20, "a": None, "b": None}]
    assert environment.sql("SELECT * FROM pairs").schema.field("c").type == pairs.type


def test_structs_of_values_have_their_fields(environment: Environment) -> None:
    found = environment.sql("SELECT b, a FROM (VALUES ({'p': 1, 'q': 'x'}, 3)) AS v (a, b)").to_arrow().to_pylist()
    assert found == [{"b": 3, "a": {"p": 1, "q": "x"}}]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS c FROM n WHERE " + " AND ".join(f"k <> {number + 3}" for number in range(260)),
        "SELECT count(*) AS c FROM n WHERE " + " OR ".join(f"k = {number} + k * 0" for number in range(260)),
        f"SELECT count(*) AS c FROM n WHERE k IN ({', '.join(map(str, range(1, 5000)))})",
        "SELECT k" + " + k" * 60 + " AS c FROM n",
        "WITH c0 AS (SELECT k FROM n)"
        + "".join(f", c{number} AS (SELECT k + 1 AS k FROM c{number - 1})" for number in range(1, 40))
        + " SELECT k FROM c39",
        "SELECT count(*) AS c FROM n AS t0 "
        + " ".join(f"JOIN n AS t{number} ON t0.k = t{number}.k" for number in range(1, 28)),
    ],
)
def test_queries_of_many_parts_have_plans(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted
