"""Joins of every kind, by keys, by conditions and by both: Drey's rows are DuckDB's."""

from __future__ import annotations

import pytest

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


def test_a_table_may_be_joined_with_itself(answers: Answers) -> None:
    found, wanted = answers("SELECT a.k, b.v, c.s FROM t AS a, t AS b, t AS c WHERE a.k = b.k AND b.v = c.v")
    assert found == wanted
    assert found
