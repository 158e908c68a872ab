"""TABLESAMPLE and USING SAMPLE: shares and numbers of rows, from the tables or from all of FROM, and seeds."""

from __future__ import annotations

import pytest

from engine import Environment


@pytest.mark.parametrize(
    ("query", "least", "most"),
    [
        ("SELECT i FROM range(1000) AS r(i) TABLESAMPLE (100 PERCENT)", 1000, 1000),
        ("SELECT i FROM range(1000) AS r(i) TABLESAMPLE BERNOULLI (0%)", 0, 0),
        ("SELECT i FROM range(1000) AS r(i) TABLESAMPLE BERNOULLI (50) REPEATABLE (3)", 400, 600),
        ("SELECT i FROM range(1000) AS r(i) TABLESAMPLE SYSTEM (50 PERCENT) REPEATABLE (3)", 400, 600),
        ("SELECT i FROM range(1000) AS r(i) TABLESAMPLE (7 ROWS)", 7, 7),
        ("SELECT i FROM range(1000) AS r(i) USING SAMPLE 7", 7, 7),
        ("SELECT i FROM range(3) AS r(i) USING SAMPLE reservoir(7 ROWS) REPEATABLE (1)", 3, 3),
        ("SELECT i FROM range(1000) AS r(i) WHERE i < 0 USING SAMPLE 7", 0, 0),
        ("SELECT i FROM range(9) AS r(i), range(9) AS q(j) TABLESAMPLE (2 ROWS)", 18, 18),
        ("SELECT i FROM range(9) AS r(i), range(9) AS q(j) WHERE j >= 0 USING SAMPLE 20", 20, 20),
    ],
)
def test_a_sample_has_as_many_rows_as_it_says(environment: Environment, query: str, least: int, most: int) -> None:
    found = environment.sql(query).to_arrow().column(0).to_pylist()
    assert least <= len(found) <= most
    assert set(found) <= set(range(1000))


def test_a_number_of_rows_of_snowflake_is_no_share(environment: Environment) -> None:
    query = "SELECT k FROM t SAMPLE (50 ROWS)"
    assert environment.sql(query, dialect="snowflake").to_arrow().num_rows == 7
    assert environment.sql(query.replace("50", "2"), dialect="snowflake").to_arrow().num_rows == 2


def test_a_seed_draws_the_same_rows_again(environment: Environment) -> None:
    query = "SELECT i FROM range(100000) AS r(i) TABLESAMPLE BERNOULLI (1) REPEATABLE ({})"
    first, again, other = (environment.sql(query.format(seed)).to_arrow() for seed in (3, 3, 4))
    assert first.equals(again)
    assert not first.equals(other)
