"""Parameters of statements: each has a value, each value is one's, and what does not fit is an error at its place."""

from __future__ import annotations

import re

import duckdb
import pytest

from engine import Environment, PlanError
from engine.statements.statements import split
from tests.sql.conftest import rows_of

LIST = "params=[...] has the values of $1, $2 and so on, params={...} those of :name"
ANSWERED = {
    "SELECT $1,$2": [1, "a"],
    "SELECT $2||'$1',$1+$1": [3, "b"],
    "SELECT $a,$b": {"a": 1, "b": 2.5},
    "SELECT $$it's;$1$$,$1": [2],
}
WRONG: list[tuple[str, object, str]] = [
    ("SELECT $0", [1], "line 1, column 8: the parameter $0; they are counted from $1"),
    ("SELECT $01", [1], "line 1, column 8: the parameter $01; they are counted from $1"),
    ("SELECT\n ?", [1], f"line 2, column 2: the parameter ? has no number; write $1 ({LIST})"),
    ("SELECT $word$a$word$", None, "line 1, column 8: the word $word$a$word$; a string is written $$...$$"),
    ("SELECT 'a', $$b", None, "line 1, column 13: unterminated string literal"),
    ("SELECT $1", [1, 2], "params has a value for $2, which the statement does not have"),
    ("SELECT k FROM t WHERE k IN $1", [5], "line 1, column 28: IN takes values in parentheses, a query or a list, and"),
    ("SELECT k FROM t WHERE k IN s", None, "line 1, column 28: IN takes values in parentheses, a query or a list, and"),
    ("SELECT k FROM t WHERE (k, v) IN $1", [[(1, 2)]], "line 1, column 33: rows IN a list; write (a, b) IN"),
    (
        "SELECT k IN ($1) FROM t",
        [[1, 2]],
        "line 1, column 14: IN ($1) of a parameter that is a list; write IN $1, without",
    ),
    ("SELECT DATE '2024-01-01' + INTERVAL $1", ["tree days"], "line 1, column 37: 'tree days' is no INTERVAL; write"),
    ("SELECT DATE '2024-01-01' + to_days($1)", ["x"], "line 1, column 13: 'x' is no number of days to add"),
    (
        "SELECT k FROM t TABLESAMPLE ($1 ROWS)",
        ["x"],
        "line 1, column 15: a sample of $1 rows; write (10 PERCENT), or (100 ROWS)",
    ),
    ("SELECT 1", [1], "params has a value for $1, which the statement does not have"),
    (
        "SELECT :shop",
        {"shop": 1, "shpo": 2},
        "params has a value for :shpo, which the statement does not have; did you",
    ),
    ("SELECT :shop", {"shpo": 2}, "line 1, column 8: no value for the parameter shop in params; did you mean shpo?"),
    ("SELECT $2", [1], "line 1, column 8: no value for the parameter 2 in params"),
    ("SELECT :a", [1], "line 1, column 8: the parameter a has a name, and params has none; pass params={'a': ...}"),
    ("SELECT $1", 5, f"params=5 is neither a list nor a dict; {LIST}"),
    ("SELECT $1, $2", "ab", f"params='ab' is neither a list nor a dict; {LIST}"),
    ("SELECT $1", b"a", f"params=b'a' is neither a list nor a dict; {LIST}"),
    ("SELECT $1", {1: 2}, "params has the key 1; keys are names, as texts"),
    ("SELECT k, $1 FROM t", [object()], "line 1, column 11: the parameter 1: "),
    ("CREATE MACRO f(a) AS a + $1", None, "CREATE MACRO f: the value 1 of params; write a parameter of the macro"),
    ("CREATE MACRO f(a) AS a", [1], "params are of queries and changes; a statement about a macro takes none"),
    ("EXPLAIN SELECT $1", [1, 2], "params has a value for $2"),
]


@pytest.mark.parametrize(
    ("query", "params", "wanted"),
    [
        ("DATE '2024-01-01' + INTERVAL $1", ["3 days"], "DATE '2024-01-04'"),
        ("DATE '2024-01-01' - INTERVAL $1 MONTH", ["2"], "DATE '2023-11-01'"),
        ("DATE '2024-01-01' + INTERVAL $1 DAY", [3], "DATE '2024-01-04'"),
        ("2 IN $1", [range(3)], "TRUE"),
        ("(SELECT count(*) FROM t TABLESAMPLE ($1 ROWS))", [2], "2"),
        ("(SELECT count(*) FROM n TABLESAMPLE ($1 PERCENT))", [100], "3"),
    ],
)
def test_a_parameter_is_what_a_constant_there_is(
    environment: Environment, query: str, params: list[object], wanted: str
) -> None:
    found = environment.sql(f"SELECT {query} AS x", params).to_arrow().to_pylist()
    assert found == environment.sql(f"SELECT {wanted} AS x").to_arrow().to_pylist()


@pytest.mark.parametrize("query", ANSWERED)
def test_signs_need_no_space_between_them(environment: Environment, query: str) -> None:
    params = ANSWERED[query]
    with duckdb.connect() as oracle:
        wanted = oracle.execute(query, params).fetchall()
    for dialect in ("drey", "duckdb"):
        found = environment.sql(query, params, dialect).to_arrow().to_pylist()  # type: ignore[arg-type]
        assert [tuple(row.values()) for row in found] == wanted


LISTS = {
    "k IN $1": ([[1, 2]], "k IN (1, 2)"),
    "k NOT IN $1": ([[1, 2]], "k NOT IN (1, 2)"),
    "k NOT IN $1 OR v > 20": ([(1, None)], "k NOT IN (1, NULL) OR v > 20"),
    "v IN $2 AND NOT k IN $1": ([[1.5, 2.0], [10, 20, 30]], "v IN (10, 20, 30) AND NOT k IN (1.5, 2.0)"),
    "(k IN $1) IS NULL": ([[None, 2]], "(k IN (NULL, 2)) IS NULL"),
    "k NOT IN $1 ": ([[]], "true"),
    "s IN $1": ([["a", "c"]], "s IN ('a', 'c')"),
    "k IN :few": ({"few": [1, 2]}, "k IN (1, 2)"),
}


@pytest.mark.parametrize("condition", LISTS)
def test_a_list_is_the_values_of_in(
    environment: Environment, oracle: duckdb.DuckDBPyConnection, condition: str
) -> None:
    params, written = LISTS[condition]
    wanted = oracle.execute(f"SELECT k, v FROM t WHERE {written}").fetchall()
    found = environment.sql(f"SELECT k, v FROM t WHERE {condition}", params).to_arrow()  # type: ignore[arg-type]
    assert rows_of(found) == sorted(wanted, key=repr)


def test_a_list_of_a_column_is_the_values_of_in(environment: Environment) -> None:
    rows = "(VALUES (1, [1, NULL]), (2, [3, NULL]), (3, [5]), (NULL, [1]), (4, NULL)) AS q(k, l)"
    found = environment.sql(f"SELECT k IN l AS a, k NOT IN l AS b, k = ANY(l) AS c FROM {rows}").to_arrow()
    assert found["a"].to_pylist() == [True, None, False, None, None] == found["c"].to_pylist()
    assert found["b"].to_pylist() == [False, None, True, None, None]


def test_a_string_between_dollars_ends_no_statement() -> None:
    assert [one.strip() for one in split("SELECT $$a;'b$$; SELECT $1")] == ["SELECT $$a;'b$$", "SELECT $1"]


@pytest.mark.parametrize(("query", "params", "said"), WRONG)
def test_what_does_not_fit_is_an_error(environment: Environment, query: str, params: object, said: str) -> None:
    with pytest.raises(PlanError, match=f"^(sql: )?{re.escape(said)}"):
        environment.sql(query, params)  # type: ignore[arg-type]


def test_a_parameter_of_a_dialect_has_no_place_of_another_word(environment: Environment) -> None:
    with pytest.raises(PlanError, match=r"^sql: line 1, column 15: no column x"):
        environment.sql("SELECT :k, k, x FROM t", {"k": 1}, dialect="spark")
