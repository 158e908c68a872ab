"""Joins of every kind, by keys, by conditions and by both: Drey's rows are DuckDB's."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine import Environment
from tests.sql.conftest import Answers

#: what stands after ON: keys, a condition, both, expressions as keys, keys where null equals null, neither
CONDITIONS = (
    "a.k = b.k",
    "a.k = b.k AND a.v > b.w",
    "a.v < b.w",
    "a.k = b.k OR a.v = b.w",
    "a.k + 1 = b.k * 1",
    "a.k = b.k AND a.k = b.w",
    "a.k IS NOT DISTINCT FROM b.k",
    "(a.k IS NOT DISTINCT FROM b.k) AND a.v > b.w",
    "a.k = b.k AND b.w > 10",
    "a.k = b.k AND a.v > 10",
    "1 = 1",
)


@pytest.mark.parametrize("how", ["INNER", "LEFT", "RIGHT", "FULL"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_pairs(answers: Answers, how: str, condition: str) -> None:
    if how in ("RIGHT", "FULL") and condition == "1 = 1":
        pytest.skip("DuckDB has no such full join")
    found, wanted = answers(f"SELECT a.k AS x, a.v, b.k AS y, b.w FROM t AS a {how} JOIN u AS b ON {condition}")
    assert found == wanted


@pytest.mark.parametrize("word", ["EXISTS", "NOT EXISTS"])
@pytest.mark.parametrize("place", ["", "a.v = 10 OR "])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_rows_with_and_without_a_match(answers: Answers, word: str, place: str, condition: str) -> None:
    found, wanted = answers(f"SELECT a.k, a.v FROM t AS a WHERE {place}{word} (SELECT 1 FROM u AS b WHERE {condition})")
    assert found == wanted


@pytest.mark.parametrize(
    "condition",
    [
        "a.k + 1 = b.k",
        "b.k - 1 = a.k AND a.v <= b.w",
        "(a.k) = (b.k) * 1 AND a.k > 0",
        "a.k % 3 = b.k % 2",
        "abs(a.k) = b.w / 10",
        "CAST(a.k AS SMALLINT) = b.k + 1",
        "upper(a.s) = upper(CAST(b.k AS VARCHAR))",
        "a.k + b.w = b.k",
    ],
)
def test_computed_values_are_equal_in_where(answers: Answers, condition: str) -> None:
    found, wanted = answers(f"SELECT a.k AS x, a.v, b.k AS y, b.w FROM t AS a, u AS b WHERE {condition}")
    assert found == wanted
    found, wanted = answers(f"SELECT * FROM t AS a JOIN u AS b ON a.k <> b.k WHERE {condition}")
    assert found == wanted


def test_computed_values_that_are_equal_are_keys(environment: Environment) -> None:
    numbers = {"small": pa.int32(), "large": pa.int64()}
    for name, data_type in numbers.items():
        environment.register(name, environment.from_arrow(pa.table({"n": pa.array([1, 2, 3], data_type)})))
    for condition in ("large.n = l.n + 1", "small.n - 1 = large.n", "large.n * 2 = small.n - 1"):
        tables = "large, small" if "small" in condition else "large, large AS l"
        asked = environment.sql(f"SELECT * FROM {tables} WHERE {condition}")
        assert len(asked.columns) == 2
        assert "inner join" in asked.explain() and "cross join" not in asked.explain()


@pytest.mark.parametrize("condition", ["12 // v.n = w.n", "CAST(v.t AS INTEGER) = w.n + 1", "CAST(v.t AS INT) = w.n"])
def test_what_fails_for_rows_without_a_partner_is_computed_of_pairs(environment: Environment, condition: str) -> None:
    rows = pa.table({"n": [0, 6], "k": [1, 2], "t": ["no number", "3"]})
    environment.register("v", environment.from_arrow(rows))
    environment.register("w", environment.from_arrow(pa.table({"n": [2], "k": [2]})))
    asked = environment.sql(f"SELECT v.n FROM v, w WHERE v.k = w.k AND {condition}")
    assert asked.to_arrow()["n"].to_pylist() == ([6] if condition.endswith("1") or "//" in condition else [])


def test_a_table_may_be_joined_with_itself(answers: Answers) -> None:
    found, wanted = answers("SELECT a.k, b.v, c.s FROM t AS a, t AS b, t AS c WHERE a.k = b.k AND b.v = c.v")
    assert found == wanted
    assert found
