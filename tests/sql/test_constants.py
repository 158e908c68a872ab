"""What is computed of constants is what is computed of columns, and DuckDB's."""

from __future__ import annotations

import pytest

from engine import DataError, Environment, NotYetSupportedError, PlanError
from tests.sql.conftest import Answers, rows_of

#: columns of one row, and the constants that they are
VALUES = {
    "d": "DATE '2024-02-29'",
    "ts": "TIMESTAMP '2024-03-01 06:00:00'",
    "s": "'ab'",
    "i": "7",
    "dec": "CAST(10.49 AS DECIMAL(8, 2))",
    "f": "CAST(0.5 AS DOUBLE)",
}
EXPRESSIONS = (
    "CAST({d} + INTERVAL '36 hours' AS TIMESTAMP)",
    "{ts} < {d} + INTERVAL '36 hours'",
    "CAST({d} + INTERVAL '1 month' AS DATE)",
    "CAST({d} + 3 AS DATE)",
    "replace({s}, '', 'x')",
    "replace({s}, 'b', '')",
    "CAST({ts} AS VARCHAR)",
    "CAST({dec} AS VARCHAR)",
    "CAST({dec} AS INT)",
    "CAST({dec} AS INT) = 10",
    "CAST({dec} AS DECIMAL(8, 1)) = 10.5",
    "{i} / 3.0",
    "{dec} * ({i} / 3.0)",
    "{i} % 4 + CASE WHEN {f} > 0.25 THEN 1 ELSE 2 END",
    "date_trunc('month', {ts})",
    "extract(dow FROM {d})",
    "{s} LIKE 'a%' AND TRUE",
    "{s} || NULL",
    "strpos({s}, 'b') IN (1, {i} - 5)",
    "concat({s}, NULL, {i})",
    "coalesce({dec}, {f})",
    "round({dec}, 1)",
    "trunc(CAST({dec} AS DOUBLE))",
    "{f} = 0.5 OR FALSE",
)
FOLDED = {
    "SELECT TRUE AND NULL AS x, NULL IS NULL AS y, 1 BETWEEN 2 AND NULL AS z": [(None, True, False)],
    "SELECT 1 = 1 AND 2 > 3 AS x": [(False,)],
    "SELECT DATE '2024-1-5' AS x, make_date(2024, 2, 29) IS NULL AS y": [("2024-01-05", False)],
    "SELECT count(*) AS x FROM t WHERE now() = now() AND current_date >= DATE '2024-01-01'": [(7,)],
    "SELECT k AS x FROM t ORDER BY k LIMIT 4 - 2 OFFSET 1 * 0": [(1,), (2,)],
    "SELECT x + 1 AS x FROM (VALUES (1 + 1), (abs(-5))) AS v (x)": [(3,), (6,)],
    "SELECT DISTINCT nvl2(v, 'a', 'b') AS x, nvl2(NULL, 1, 2) AS y FROM t": [("a", 2), ("b", 2)],
    "SELECT round(v / 7.0, 1 + 1) AS x FROM t WHERE v = 10": [(1.43,)],
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_constant_and_a_column_have_the_same_value_which_is_duckdbs(answers: Answers, expression: str) -> None:
    source = f"(VALUES ({', '.join(VALUES.values())})) AS c ({', '.join(VALUES)})"
    constant = expression.format(**VALUES)
    column = expression.format(**{name: name for name in VALUES})
    found, wanted = answers(f"SELECT {constant} AS x, {column} AS y FROM {source}")
    assert found == wanted
    assert found[0][0] == found[0][1]


@pytest.mark.parametrize("query", FOLDED)
def test_a_constant_is_computed_wherever_it_stands(environment: Environment, query: str) -> None:
    found = rows_of(environment.sql(query).to_arrow())
    assert [tuple(str(value) if hasattr(value, "year") else value for value in row) for row in found] == FOLDED[query]


def test_a_condition_of_constants_reads_nothing(environment: Environment) -> None:
    assert "never true" in environment.sql("SELECT k FROM t WHERE length('ab') = 3").explain()


def test_now_is_that_of_each_query(environment: Environment) -> None:
    query = "SELECT now() AS x, now() AS y FROM n LIMIT 1"
    first, second = (environment.sql(query).to_arrow().to_pylist()[0] for _ in range(2))
    assert first["x"] == first["y"] < second["x"] == second["y"]


def test_what_has_no_value_fails_only_where_it_is_computed(environment: Environment) -> None:
    query = "SELECT CASE WHEN k > 0 THEN k ELSE 9223372036854775807 + k END AS x FROM n"
    assert rows_of(environment.sql(query).to_arrow()) == [(1,), (2,), (7,)]


def test_a_text_that_is_no_value_is_said_with_its_place(environment: Environment) -> None:
    with pytest.raises(PlanError, match=r"line 1, column 13: '12.x' is no DECIMAL\(5, 2\)"):
        environment.sql("SELECT CAST('12.x' AS DECIMAL(5, 2)) AS x")


@pytest.mark.parametrize(
    ("call", "said"),
    [("chr(d)", "no function has these types of arguments: chr"), ("to_hex(d)", "")],
)
def test_functions_that_columns_do_not_have_are_refused(environment: Environment, call: str, said: str) -> None:
    with pytest.raises((NotYetSupportedError, PlanError), match=f"line 1, column 8: {said}"):
        environment.sql(f"SELECT {call} AS x FROM (SELECT k, DATE '2024-01-01' AS d FROM t) AS a")


@pytest.mark.parametrize(("call", "said"), [("2024, 13, 1", ""), ("2000 + v, 2, 30", ": 20")])
def test_a_date_that_is_none_is_said_as_it_is_written(environment: Environment, call: str, said: str) -> None:
    with pytest.raises(DataError) as raised:
        environment.sql(f"SELECT make_date({call}) AS x FROM t WHERE v IS NOT NULL").to_arrow()
    assert f"make_date({call}): there is no such date{said}" in str(raised.value)
