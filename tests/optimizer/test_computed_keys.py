"""Computed keys: those that follow from other keys are computed of the groups, and the groups are the same."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from engine import Environment, col, count, rand

TABLE = pa.table(
    {
        "a": [1, 2, 2, None, 1, 3] * 5,
        "t": ["x", "y", None, "y", "x", ""] * 5,
        "f": [0.0, -0.0, 1.5, float("nan"), None, 2.5] * 5,
        "v": range(30),
    }
)


@pytest.fixture
def env():
    with Environment() as env:
        env.register("t", env.from_arrow(TABLE))
        yield env


def keys_of(data):
    """Return the keys by which rows are grouped."""
    (line,) = {line.split("aggregate by ")[1] for line in data.explain().splitlines() if "aggregate by " in line}
    return line.split(", ")[:-2]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT a, a + 1 AS b, a * a AS c, count(*) AS n FROM t GROUP BY a, b, c", ["a"]),
        ("SELECT a - 1 AS b, a, t, t || a AS c, sum(v) AS n FROM t GROUP BY ALL", ["a", "t"]),
        ("SELECT 1 AS one, t, count(*) AS n FROM t GROUP BY one, t", ["t"]),
        ("SELECT DISTINCT a, upper(t) AS u, t FROM t", None),
        ("SELECT a, a + 1 AS b, count(*) AS n FROM t GROUP BY a, b HAVING b > 2 ORDER BY n DESC, b LIMIT 2", ["a"]),
    ],
)
def test_groups_are_those_of_duckdb(env, query, keys):
    with duckdb.connect() as connection:
        connection.register("t", TABLE)
        wanted = connection.sql(query).fetchall()
    found = env.sql(query)
    assert sorted(map(repr, (tuple(row.values()) for row in found.to_arrow().to_pylist()))) == sorted(map(repr, wanted))
    if keys is not None:
        assert keys_of(found) == keys


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        (col("a") + col("v"), ["a", "k"]),  # of a column that is no key
        (col("a") + rand(7), ["a", "k"]),  # another one each time
    ],
)
def test_other_keys_stay(env, key, keys):
    data = env.from_arrow(TABLE)
    assert keys_of(data.group_by(col("a"), k=key).agg(n=count())) == keys


def test_what_is_computed_of_floats_stays(env):
    """0.0 and -0.0 are one group; 1 / x makes two of it."""
    data = env.from_arrow(pa.table({"f": [0.0, -0.0, 2.0]})).group_by("f", k=(1 / col("f")).cast("string"))
    assert keys_of(data.agg(n=count())) == ["f", "k"]


def test_constants_alone_are_no_groups_of_no_rows(env):
    found = env.sql("SELECT 1 AS one, 2 AS two, count(*) AS n FROM t WHERE v < 0 GROUP BY one, two")
    assert found.to_arrow().num_rows == 0


def test_names_stay(env):
    data = env.from_arrow(TABLE).group_by(col("a"), b=col("a") + 1).agg(n=count())
    assert data.to_arrow().column_names == ["a", "b", "n"]
