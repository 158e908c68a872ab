"""What is written in place of a refused function gives the values that the function has in its engine."""

from __future__ import annotations

import datetime
import re
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from engine import Environment
from engine.sql_values.refused_functions import REFUSED

TABLE = pa.table(
    {
        "x": [1, 2, 5, 9, -3],
        "y": [1, 0, 2, 3, 5],
        "path": ["/a/b/c.csv", "a/b/c.csv", "c.csv", "", "a/"],
        "s": ["a.b.c", "x", "", None, "a.b"],
        "a": [datetime.datetime(2026, month, 1) for month in (1, 2, 3, 4, 5)],
        "b": [datetime.datetime(2025, 12, 31, 23)] * 5,
    }
)
DEVIATION = "t, (SELECT avg(x) AS m, stddev_pop(x) AS d FROM t)"
#: expressions of DuckDB with the wanted values: its own function where it has one
WANTED = {
    "age": "a - b",
    "months_between": "datesub('month', b, a)",
    "parse_filename": "parse_filename(path)",
    "parse_dirname": "parse_dirname(path)",
    "bit_length": "bit_length(s)",
    "substring_index": "array_to_string(string_split(s, '.')[1:2], '.')",
    "try_divide": "x // nullif(y, 0)",
    "sem": "sem(x)",
    "kurtosis_pop": "kurtosis_pop(x)",
}


def code_of(name: str) -> str:
    """Return the expression of an advice, without what is said behind it."""
    return re.split(r", (?:or|with|which|whole) | or ", REFUSED[name].removeprefix("write "))[0]


def plain(values: list[tuple[Any, ...]]) -> list[Any]:
    return [round(value, 9) if isinstance(value, float) else value for (value,) in values]


@pytest.mark.parametrize("name", sorted(WANTED))
def test_an_advice_gives_the_values_of_the_function(environment: Environment, name: str) -> None:
    with duckdb.connect() as oracle:
        oracle.register("t", TABLE)
        right = oracle.execute(f"SELECT {WANTED[name]} FROM t").fetchall()
    environment.register("t", environment.from_arrow(TABLE))
    try:
        source = DEVIATION if name == "kurtosis_pop" else "t"
        found = environment.sql(f"SELECT {code_of(name)} AS v FROM {source}").to_dict()["v"]
    finally:
        environment.unregister("t")
    assert plain([(value,) for value in found]) == plain(right)
