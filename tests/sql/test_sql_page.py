"""The page of SQL is true: its functions are all that there are, its examples run and give what DuckDB gives."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from docs.generators.sql_page import SYNTAX
from engine import Environment
from engine.sql_values.function_guide import FUNCTION_NAMES, GUIDE
from tests.sql import test_lambdas
from tests.sql.conftest import Answers
from tests.sql.function_columns import TABLE
from tests.sql.function_rows import VALUES
from tests.sql.group_function_rows import AGGREGATES, WINDOWS
from tests.sql.test_expressions import EXPRESSIONS

#: no other engine has the same values of these
_OF_NO_ORACLE = {
    "random",
    "rand",
    "uuid",
    "gen_random_uuid",
    "uuidv4",
    "nvl",
    "nvl2",
    "initcap",
    "now",
    "today",
    "format_string",
    "timestampdiff",
    "iff",
}
_QUERIES = [query for forms in SYNTAX.values() for query in forms.values()]


def test_every_function_of_the_page_is_compared_with_duckdb() -> None:
    compared = " ".join((*VALUES, *AGGREGATES, *WINDOWS, *EXPRESSIONS, *test_lambdas.EXPRESSIONS)).lower()
    missing = [name for name in FUNCTION_NAMES if not re.search(rf"\b{name}\b", compared)]
    assert sorted(set(missing) - _OF_NO_ORACLE) == []


@pytest.mark.parametrize("example", [row[1] for rows in GUIDE.values() for row in rows])
def test_every_example_of_a_function_runs(environment: Environment, example: str) -> None:
    if "x" not in environment.tables:
        environment.register("x", environment.from_arrow(TABLE))
    assert environment.sql(f"SELECT {example} AS value FROM x").to_arrow().num_rows in (1, TABLE.num_rows)


@pytest.mark.parametrize("query", _QUERIES)
def test_every_form_gives_what_duckdb_gives(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    plain = [tuple(float(one) if isinstance(one, Decimal) else one for one in row) for row in wanted]
    assert [tuple(float(one) if isinstance(one, Decimal) else one for one in row) for row in found] == plain


@pytest.mark.parametrize(
    "name",
    [
        "nvl2(i, 1, 2)",
        "today()",
        "iff(b, 1, 2)",
        "initcap(s)",
        "uuid()",
        "gen_random_uuid()",
        "uuidv4()",
        "timestampdiff(DAY, ts, te)",
    ],
)
def test_what_duckdb_has_not_runs(environment: Environment, name: str) -> None:
    environment.register("x", environment.from_arrow(TABLE))
    assert environment.sql(f"SELECT {name} AS value FROM x").to_arrow().num_rows == TABLE.num_rows
