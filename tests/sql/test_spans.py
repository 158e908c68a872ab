"""Spans of time that columns say, and differences of timestamps."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine import Environment, NotYetSupportedError
from engine.sql_values.spans import unit_named
from tests.sql.conftest import Answers

SOURCE = (
    "(SELECT CAST(a AS TIMESTAMP(6)) AS a, CAST(b AS TIMESTAMP(6)) AS b FROM (VALUES ('2024-02-29 12:00:00', "
    "'2024-02-27 23:59:59.5'), ('1969-12-31 00:00:00', '1970-01-02 01:02:03'), (NULL, '2000-01-01'), "
    "('2000-01-01', '2000-01-01')) AS v (a, b)) AS m"
)
QUERIES = (
    "a - b AS x",
    "extract(epoch FROM a - b) AS x",
    "extract(day FROM a - b) AS x, extract(hour FROM a - b) AS y, date_part('minute', a - b) AS z",
    "a - b > INTERVAL '1 day' AS x, a - b <= INTERVAL '36 hours' AS y, INTERVAL '0 days' = a - b AS z",
    "b + (a - b) AS x",
)


@pytest.mark.parametrize("values", QUERIES)
def test_a_difference_is_that_of_duckdb(answers: Answers, values: str) -> None:
    found, wanted = answers(f"SELECT {values} FROM {SOURCE}")
    assert found == wanted


def test_a_difference_beside_months_is_refused(environment: Environment) -> None:
    with pytest.raises(NotYetSupportedError, match="write days"):
        environment.sql(f"SELECT a - b > INTERVAL '1 month' AS x FROM {SOURCE}")


def test_a_span_is_a_column(environment: Environment) -> None:
    found = environment.sql(f"SELECT max(a - b) AS x FROM {SOURCE}").to_arrow()
    assert found["x"].to_pylist() == [timedelta(days=1, hours=12, microseconds=500000)]


def test_units_have_several_names() -> None:
    assert [unit_named(name) for name in ("DAY", "days", "d", "min", "ms", "S", "hrs")] == [
        *("day", "day", "day", "minute", "millisecond", "second", "hour"),
    ]
