"""Names of tables and columns, in any case, and parameters in place of values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine import Environment, PlanError
from engine.sql.scopes import AmbiguousNameError, ColumnNames, Named, Scope, ScopeTable, matching, own_columns

_TABLE = ScopeTable("t", (Named("Shop", "Shop"), Named("a", "a"), Named("A", "A")))


def test_a_name_is_found_in_any_case() -> None:
    scope = Scope((_TABLE,))
    assert scope.column("SHOP") == Named("Shop", "Shop")
    assert scope.table("T") == _TABLE
    assert scope.column("none") is None


def test_of_names_that_differ_by_case_alone_the_one_as_it_is_written_is_meant() -> None:
    scope = Scope((ScopeTable("t", (Named("a", "a"), Named("A", "A#2"), Named("bB", "bB"), Named("Bb", "Bb"))),))
    assert scope.column("A") == Named("A", "A#2")
    assert matching("bB", scope.tables[0].columns) == [Named("bB", "bB")]
    with pytest.raises(AmbiguousNameError):
        scope.column("bb")


def test_a_key_of_using_stands_once_among_all_columns() -> None:
    left = ScopeTable("l", (Named("k", "k"), Named("v", "v")))
    right = ScopeTable("r", (Named("k", "k#2"), Named("w", "w")), hidden=frozenset(("k#2",)))
    scope = Scope((left, right), {"k": Named("k", "merged")})
    assert [one.column for one in scope.columns] == ["merged", "v", "w"]
    assert scope.column("K") == Named("k", "merged")


def test_no_two_columns_of_a_query_have_one_name() -> None:
    names = ColumnNames()
    own_columns(names, ["k", "v"])
    assert own_columns(names, ["k"]) == (Named("k", "k#2"),)


def test_queries_find_names_in_any_case() -> None:
    with Environment() as env:
        env.register("Sales", env.from_arrow(pa.table({"Shop": ["a"], "Unit Price": [2]})))
        found = env.sql("SELECT shop, \"unit price\" * 2 AS X FROM sales AS S WHERE s.SHOP = 'a'").to_arrow()
        assert found.to_pydict() == {"shop": ["a"], "X": [4]}
        assert env.sql("SELECT * FROM SALES").columns == ["Shop", "Unit Price"]


def test_a_name_with_a_dot_is_of_a_table_outside_where_a_column_within_has_no_fields() -> None:
    query = "SELECT id, (SELECT count(*) FROM (VALUES (1, 'q'), (2, 'r')) AS s(id, t) WHERE s.id = {}) AS n"
    with Environment() as env:
        rows = f"{query} FROM (VALUES (1), (3)) AS t(id) ORDER BY id"
        assert [tuple(row) for row in env.sql(rows.format("t.id")).collect()] == [(1, 1), (3, 0)]
        with pytest.raises(PlanError, match="no field x: the value is VARCHAR, no struct"):
            env.sql(rows.format("t.x"))


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("SELECT :k AS k", {"k": 2}),
        ("SELECT k FROM t WHERE k = $1 AND v > $2", [2, 10]),
        ("SELECT k FROM t WHERE k = :key AND v > $least", {"key": 2, "least": 10}),
        ("SELECT k FROM t WHERE k IN ($1, $1 + 0) AND v BETWEEN $2 AND 30", [2, 11]),
    ],
)
def test_parameters_are_values(environment: Environment, query: str, params: object) -> None:
    assert environment.sql(query, params=params).to_arrow()["k"].to_pylist() == [2]  # type: ignore[arg-type]


def test_a_parameter_is_no_text_of_the_query(environment: Environment) -> None:
    query = "SELECT count(*) AS n FROM t WHERE s = $1"
    assert environment.sql(query, params=["a' OR '1' = '1"]).to_arrow()["n"].to_pylist() == [0]


@pytest.mark.parametrize(
    ("params", "said"),
    [(None, "a parameter without a value; pass params="), ([], "no value for the parameter 1"), ({}, "parameter 1")],
)
def test_a_parameter_without_a_value_is_an_error(environment: Environment, params: object, said: str) -> None:
    with pytest.raises(PlanError, match=f"line 1, column \\d+: {said}|{said}"):
        environment.sql("SELECT k FROM t WHERE k = $1", params=params)  # type: ignore[arg-type]
