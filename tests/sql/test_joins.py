"""Joins of every kind, by keys, by conditions and by both: Drey's rows are DuckDB's."""

from __future__ import annotations

import pytest

from engine.sql.datafusion_planner import plan_query
from engine.sql.messages import messages_below
from engine.sql.null_aware import joins_of
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


def test_types_and_constants_are_no_part_of_the_tree_of_a_plan() -> None:
    text = "SELECT count(*) FROM (VALUES (1, 'a'), (2, 'b')) AS t (k, v) JOIN (VALUES (2)) AS u (k) ON t.k = u.k + 1"
    relation = plan_query(text, {}).relation
    kinds, stack = set(), [relation]
    while stack:
        message = stack.pop()
        kinds.add(message.DESCRIPTOR.full_name)
        stack.extend(messages_below(message))
    assert {"substrait.JoinRel", "substrait.AggregateRel", "substrait.Expression.FieldReference"} < kinds
    assert not any(kind.startswith(("substrait.Type", "substrait.Expression.Literal")) for kind in kinds)
    assert len(list(joins_of(relation))) == 1
