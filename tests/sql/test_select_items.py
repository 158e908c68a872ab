"""What a list of SELECT has without a name is called as it was written."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine import Environment, PlanError

NAMED = {
    "SELECT SUM(T.v), k, x AS y FROM t": ["sum(t.v)", "p1", "p2"],
    "SELECT DISTINCT upper(s), 'A' || s b, k + 1 c, (k) d": ["upper(s)", "p1", "p2", "p3"],
    "SELECT CASE WHEN k = 1 THEN 2 END, CASE WHEN k = 1 THEN 2 END x": ["case when k = 1 then 2 end", "p1"],
    "SELECT k = 1 AND v, k IS NULL, k::INT": ["k = 1 and v", "k is null", "k::int"],
    "WITH a AS (SELECT 1 + 1) SELECT f(a, b),  g( 'X' ) -- c\n FROM a UNION SELECT 1, 2": ["f(a, b)", "g( 'X' )"],
    "SELECT k * 1.0 x, 1.5 y, k + 1e0 z, 2.5": ["p0", "p1", "p2", "2.5"],
    "SELECT sum(v) OVER (ORDER BY k), count(*) n, [1, 2] FROM t": ["sum(v) over (order by k)", "p1", "[1, 2]"],
}


def test_a_struct_is_one_column(environment: Environment) -> None:
    assert environment.sql("SELECT {'a': k, 'b': s}, k AS \"K\" FROM t").columns == ["{'a': k, 'b': s}", "K"]


def test_fields_of_structs_are_no_columns_of_their_table() -> None:
    structs = [{"d": "k", "x": {"a": 1, "b": [2]}}]
    data = pa.table({"s": [{"a": 1, "d": 2}], "l": [structs], "d": [5], "a": [6]})
    with Environment() as env:
        env.register("rows", env.from_arrow(data))
        assert env.sql("SELECT d, a FROM rows").to_arrow() == data.select(["d", "a"])
        assert env.sql("SELECT * FROM rows WHERE a = 6").to_arrow() == data
        assert env.sql("SELECT a, l FROM rows WHERE d = 5").to_arrow() == data.select(["a", "l"])


def test_a_star_behind_a_struct_is_its_fields() -> None:
    data = pa.table({"k": [1, 2], "s": [{"a": 1, "b": {"c": "x"}}, {"a": 2, "b": None}]})
    with Environment() as env:
        env.register("rows", env.from_arrow(data))
        assert env.sql("SELECT s.*, k FROM rows").columns == ["a", "b", "k"]
        assert env.sql("SELECT rows.s.* EXCLUDE (b) RENAME (a AS z) FROM rows ORDER BY z").to_dicts() == [
            {"z": 1},
            {"z": 2},
        ]
        assert env.sql("SELECT s.* REPLACE (s.a * 10 AS a) FROM rows WHERE k = 2").to_dicts() == [{"a": 20, "b": None}]
        with pytest.raises(PlanError, match=r"line 1, column 8: no table k"):
            env.sql("SELECT k.* FROM rows")
        with pytest.raises(PlanError, match=r"column s is in several tables"):
            env.sql("SELECT s.* FROM rows, rows AS others")
