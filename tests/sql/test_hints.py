"""Hints about joins in a comment behind SELECT: the plan follows them, and those of no join are errors."""

from __future__ import annotations

import pytest

from engine import Environment, PlanError

FOLLOWED = {
    "SELECT /*+ BROADCAST(u) */ t.v FROM t JOIN u ON t.k = u.k": "BROADCAST_HASH_SECOND",
    "SELECT /*+ mapjoin(t) */ t.v FROM t JOIN u USING (k)": "BROADCAST_HASH_FIRST",
    "SELECT /*+ SHUFFLE_HASH(x) */ DISTINCT t.v FROM t LEFT JOIN u AS x ON t.k = x.k": "REPARTITION_HASH_SECOND",
    'SELECT /*+ MERGE(t), BROADCAST("n") */ t.v FROM t JOIN u ON t.k = u.k JOIN n ON n.k = t.k': (
        "REPARTITION_SORT_MERGE"
    ),
    "SELECT /*+ REPARTITION_HASH_FIRST(u) */ t.v FROM t JOIN u ON t.k = u.k": "REPARTITION_HASH_FIRST",
    "SELECT /*+ BROADCAST(u) BROADCAST(u) */ t.v FROM t JOIN u ON t.k = u.k": "BROADCAST_HASH_SECOND",
    "SELECT /* why */ /*+ BROADCAST(u) */ DISTINCT t.v FROM t JOIN u ON t.k = u.k": "BROADCAST_HASH_SECOND",
    "SELECT\n  /*+ BROADCAST(u) */ DISTINCT t.v FROM t JOIN u ON t.k = u.k": "BROADCAST_HASH_SECOND",
    "SELECT -- why\n  /*+ MERGE(u) */ t.v + 1 AS w\nFROM t JOIN u ON t.k = u.k": "REPARTITION_SORT_MERGE",
    "SELECT\n  /*+ MERGE(u) */ (SELECT max(k) FROM n) AS w, t.v FROM t JOIN u ON t.k = u.k": "REPARTITION_SORT_MERGE",
    "/*+ BROADCAST(u) */ SELECT t.v FROM t JOIN u ON t.k = u.k": "BROADCAST_HASH_SECOND",
    "SELECT v FROM (SELECT /*+ BROADCAST(u) */ t.v FROM t JOIN u ON t.k = u.k) AS x": "BROADCAST_HASH_SECOND",
}
WRONG = {
    "SELECT /*+ MERGE(u) */ t.v FROM t JOIN u ON t.k < u.k": (
        r"line 1, column 12: the hint MERGE\(u\) is of no use to inner joins like this: the join has no equality"
    ),
    "SELECT /*+ BROADCAST(t) */ t.v FROM t LEFT JOIN u ON t.k = u.k": (
        r"line 1, column 12: the hint BROADCAST\(t\) .* rows of the left side .* write BROADCAST\(u\) or SHUFFLE_HASH"
    ),
    "SELECT /*+ BROADCAST(u) */ t.v FROM t FULL JOIN u USING (k)": r"to full joins .* write SHUFFLE_HASH\(u\)",
    "SELECT /*+ BROADCAST(u), MERGE(u) */ t.v FROM t JOIN u ON t.k = u.k": (
        r"line 1, column 26: the hint MERGE\(u\) contradicts the hint BROADCAST\(u\) of the same join"
    ),
    "SELECT /*+ BROADCAST(t, u) */ t.v FROM t JOIN u ON t.k = u.k": r"BROADCAST\(u\) contradicts the hint BROADCAST",
    "SELECT /*+ BROADCAST(u) */\n/*+ MERGE(t) */ t.v FROM t JOIN u ON t.k = u.k": "line 2, column 5: the hint MERGE",
    "SELECT /*+ BROADCAST() */ t.v FROM t JOIN u ON t.k = u.k": r"line 1, column 12: the hint BROADCAST\(\) names",
    "SELECT DISTINCT /*+ BROADCAST(u) */ t.v FROM t JOIN u ON t.k = u.k": "line 1, column 17: a hint is read",
    "SELECT t.v FROM t JOIN /*+ BROADCAST(u) */ u ON t.k = u.k": "line 1, column 24: a hint is read",
    "SELECT v FROM t WHERE v > '/*+' /*+ a */ OR k = 1": "line 1, column 33: a hint is read behind SELECT",
    "VALUES /*+ BROADCAST(u) */ (1)": "line 1, column 8: a hint is read behind SELECT",
    "SELECT /*+ BROADCAST(w) */ t.v FROM t JOIN u ON t.k = u.k": r"no table w in FROM \(there are t, u\)",
    "SELECT /*+ BRAODCAST(u) */ t.v FROM t JOIN u ON t.k = u.k": "no hint BRAODCAST.*did you mean BROADCAST",
    "SELECT /*+ COALESCE(3) */ v FROM t": r"no hint COALESCE\(3\)",
    "SELECT /*+ BROADCAST(t) */ v FROM t": "t is joined to nothing here",
    "SELECT /*+ BROADCAST(u) */ t.v FROM t, u WHERE t.k = u.k": "write JOIN u ON",
    "SELECT /*+ BROADCAST(u) */ 1": "no table u in FROM",
}


@pytest.mark.parametrize("query", FOLLOWED)
def test_a_hint_is_followed(environment: Environment, query: str) -> None:
    assert f"hint {FOLLOWED[query]}" in environment.sql(query).explain()


def test_a_comment_that_is_no_hint_is_left_alone(environment: Environment) -> None:
    query = "SELECT /* + BROADCAST(w) */ t.v /* a + b */ FROM t JOIN u ON t.k = u.k"
    assert "hint" not in environment.sql(query).explain()


def test_hints_of_spark_are_read_in_its_dialect(environment: Environment) -> None:
    query = "SELECT /*+ BROADCAST(u) */ t.v FROM t JOIN u ON t.k = u.k"
    assert "hint BROADCAST_HASH_SECOND" in environment.sql(query, dialect="spark").explain()


@pytest.mark.parametrize("query", WRONG)
def test_a_hint_of_no_join_is_an_error(environment: Environment, query: str) -> None:
    with pytest.raises(PlanError, match=WRONG[query]):
        environment.sql(query)
