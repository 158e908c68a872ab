"""Constants that overflow are an error, as in the rows of a column; those that do not are DuckDB's."""

from __future__ import annotations

import pytest

from engine import Environment, PlanError
from tests.sql.conftest import Answers

OVERFLOWS = (
    "9223372036854775807 + 1",
    "-9223372036854775807 - 2",
    "CAST(9223372036854775807 AS BIGINT) * 2",
    "v + (3000000000 * 3000000000 * 2)",
    "9223372036854775807 * 2 + 1.5",
    "(1 + 2) * (9223372036854775807 - 5)",
    "1 + 9223372036854775807 / 1",
)
COMPUTED = (
    "9223372036854775806 + 1",
    "-9223372036854775807 - 1",
    "2 * (3 + 4) - 9223372036854775807 % 7",
    "v - 9000000000000000000 + 9000000000000000000",
    "k * 4611686018427387904 % 2 * 4611686018427387904",
    "CAST(127 AS TINYINT) + CAST(1 AS INT)",
    "CAST(2147483647 AS INT) + CAST(1 AS BIGINT)",
    "length('Int64(9223372036854775807) + Int64(1)')",
    "k % 3 * 5 - 2 * 3 + 7 % 4",
)


@pytest.mark.parametrize("value", OVERFLOWS)
def test_constants_that_overflow_are_an_error(environment: Environment, value: str) -> None:
    with pytest.raises(PlanError, match="overflows an integer of"):
        environment.sql(f"SELECT {value} AS x FROM t")


def test_a_condition_that_overflows_is_an_error(environment: Environment) -> None:
    with pytest.raises(PlanError, match=r"9223372036854775807 \+ 1 overflows an integer of 64 bits"):
        environment.sql("SELECT k FROM t WHERE 9223372036854775807 + 1 < 0")


@pytest.mark.parametrize("value", COMPUTED)
def test_others_are_computed(answers: Answers, value: str) -> None:
    found, wanted = answers(f"SELECT {value} AS x FROM t WHERE k = 1")
    assert found == wanted
