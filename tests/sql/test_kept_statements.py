"""Queries that are kept: a statement that is asked again is not bound again, unless it may mean something else."""

import threading
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from engine import Environment
from engine.api import kept_statements
from engine.statements import query


@pytest.fixture
def env():
    with Environment() as environment:
        environment.register("t", environment.from_arrow(pa.table({"k": [1, 2, 3], "v": ["a", "b", None]})))
        yield environment


@pytest.fixture
def bound(monkeypatch):
    """Return the list of statements that were bound."""
    statements = []
    data_set_of = query.data_set_of

    def counted(statement, context):
        statements.append(context.session.text)
        return data_set_of(statement, context)

    monkeypatch.setattr(query, "data_set_of", counted)
    return statements


def asked(env, text, *rest, **named):
    return env.sql(text, *rest, **named).to_arrow().to_pylist()


KEPT = [
    "SELECT k FROM t WHERE k > 1",
    "SELECT a.k, (SELECT max(k) FROM t) AS m FROM t AS a WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k + 1)",
    "WITH c AS (SELECT k FROM t) SELECT * FROM c JOIN c AS d USING (k)",
    "SELECT sum(k) OVER (ORDER BY k) AS s FROM t",
    "VALUES (1, 'x'), (2, 'y')",
    "SELECT * FROM T TABLESAMPLE (50 PERCENT) REPEATABLE (3)",
    "SELECT x FROM range(3) AS r(x)",
]
BOUND_ANEW = [
    "SELECT * FROM generate_series(current_date - 2, current_date, INTERVAL 1 DAY)",
    "SELECT random() AS r FROM t",
    "SELECT * FROM t TABLESAMPLE (50 PERCENT)",
    "SELECT table_name FROM information_schema.tables",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r",
]


@pytest.mark.parametrize("text", KEPT)
def test_a_query_that_is_asked_again_is_not_bound_again(env, bound, text):
    first = asked(env, text)
    assert asked(env, text) == first
    assert len(bound) == 1


@pytest.mark.parametrize("text", BOUND_ANEW)
def test_a_query_of_chance_time_or_catalogs_is_bound_each_time(env, bound, text):
    asked(env, text)
    asked(env, text)
    assert len(bound) == 2


@pytest.mark.parametrize("moment", ["now()", "current_timestamp", "current_time"])
def test_a_query_of_the_moment_is_bound_once_and_its_job_made_anew(env, bound, moment):
    text = f"SELECT {moment} AS n FROM t"
    first, second = asked(env, text), asked(env, text)
    assert first[0]["n"] < second[0]["n"] or moment == "current_time"
    assert {row["n"] for row in first} == {first[0]["n"]}
    assert len(bound) == 1


def test_numbers_by_chance_differ_from_query_to_query(env):
    assert asked(env, "SELECT random() AS r FROM t") != asked(env, "SELECT random() AS r FROM t")


def test_a_file_that_a_query_names_is_looked_at_each_time(env, bound, tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("k\n1\n")
    assert asked(env, f"SELECT * FROM '{path}'") == [{"k": 1}]
    path.write_text("k,v\n1,2\n")
    assert asked(env, f"SELECT * FROM '{path}'") == [{"k": 1, "v": 2}]
    assert len(bound) == 2


def test_a_name_that_means_other_rows_is_bound_anew(env):
    text = "SELECT * FROM t"
    assert len(asked(env, text)) == 3
    env.register("t", env.from_arrow(pa.table({"z": [7]})))
    assert asked(env, text) == [{"z": 7}]
    env.unregister("t")
    with pytest.raises(Exception, match="no table t"):
        env.sql(text)


def test_a_function_or_a_macro_that_means_something_else_is_bound_anew(env):
    def changed(k: int) -> int:
        return k + 1

    text = "SELECT changed(k) AS c FROM t"
    env.sql("CREATE MACRO changed(k) AS k * 10")
    assert [row["c"] for row in asked(env, text)] == [10, 20, 30]
    env.sql("CREATE OR REPLACE MACRO changed(k) AS k * 100")
    assert [row["c"] for row in asked(env, text)] == [100, 200, 300]
    env.sql("DROP MACRO changed")
    env.register_function("changed", changed)
    assert [row["c"] for row in asked(env, text)] == [2, 3, 4]
    env.register_function("Changed", lowered)
    assert [row["c"] for row in asked(env, text)] == [0, 1, 2]


def lowered(k: int) -> int:
    return k - 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, 1.0),
        (1, True),
        ("1", 1),
        (Decimal("1.0"), Decimal("1.00")),
        (None, 0),
        (date(2024, 1, 1), date(2024, 1, 2)),
    ],
)
def test_parameters_of_other_values_or_types_are_other_queries(env, bound, one, other):
    text = "SELECT $1 AS p"
    for value in (one, other, one, other):
        (row,) = asked(env, text, [value])
        assert row["p"] == value
    assert len(bound) == 2
    (row,) = asked(env, "SELECT :p AS p", {"p": one})
    assert row["p"] == one


def test_lists_and_names_of_parameters_are_told_apart(env, bound):
    assert asked(env, "SELECT k FROM t WHERE k IN $1 ORDER BY k", [[1, 2]]) == [{"k": 1}, {"k": 2}]
    assert asked(env, "SELECT k FROM t WHERE k IN $1 ORDER BY k", [[3]]) == [{"k": 3}]
    text = "SELECT :a - :b AS d"
    assert asked(env, text, {"a": 3, "b": 1}) == [{"d": 2}]
    assert asked(env, text, {"b": 3, "a": 1}) == [{"d": -2}]


def test_dialects_are_told_apart(env):
    text = "SELECT '1' || 2 AS q, 7 / 2 AS r"
    assert asked(env, text, dialect="duckdb") != asked(env, text, dialect="postgres")


def test_a_query_that_fails_fails_again(env):
    for _ in range(2):
        with pytest.raises(Exception, match="nothing"):
            env.sql("SELECT nothing FROM t")


def test_the_latest_queries_are_kept(env, bound, monkeypatch):
    monkeypatch.setattr(kept_statements, "COUNT_MAX", 2)
    for text in ("SELECT 1 AS a", "SELECT 2 AS a", "SELECT 1 AS a", "SELECT 3 AS a", "SELECT 1 AS a"):
        env.sql(text)
    assert len(bound) == 3
    env.sql("SELECT 2 AS a")
    assert len(bound) == 4


def test_a_name_that_changes_while_a_query_is_bound_is_not_kept_as_it_was(env, monkeypatch):
    data_set_of = query.data_set_of
    other = env.from_arrow(pa.table({"k": [9]}))

    def slow(statement, context):
        found = data_set_of(statement, context)
        thread = threading.Thread(target=lambda: env.register("t", other))
        thread.start()
        thread.join()
        return found

    monkeypatch.setattr(query, "data_set_of", slow)
    assert len(asked(env, "SELECT k FROM t")) == 3
    monkeypatch.undo()
    assert asked(env, "SELECT k FROM t") == [{"k": 9}]


def test_changes_of_a_table_are_seen(env, tmp_path):
    env.from_arrow(pa.table({"k": [1, 2]})).write_delta(str(tmp_path / "d"))
    env.execute()
    env.register("d", env.read_delta(str(tmp_path / "d")))
    text = "SELECT count(*) AS n FROM d"
    assert asked(env, text) == [{"n": 2}]
    env.sql("DELETE FROM d WHERE k = 1")
    assert asked(env, text) == [{"n": 1}]
