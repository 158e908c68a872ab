"""Assignments of UPDATE and MERGE: each column once, of the table that changes, with values that it can hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from engine import Environment, col, lit
from engine.errors import DataError, EngineError, NotYetSupportedError, SchemaError
from engine.outputs.table_targets import delta
from tests.sql.test_table_changes import KINDS, rows_of, table_of

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

MERGE = "MERGE INTO T AS d USING changes AS s ON d.id = s.key"
MATCHED, NEW = f"{MERGE} WHEN MATCHED THEN", f"{MERGE} WHEN NOT MATCHED THEN"
INCOMPLETE = "MERGE is not complete: write WHEN MATCHED THEN ..., WHEN NOT MATCHED THEN ..., found: the end"
WRONG = {
    "UPDATE T SET v = 1, V = 2": "the column v is there twice",
    f"{MATCHED} UPDATE SET v = 1, p = 'a', d.v = 2": "the column v is there twice",
    f"{NEW} INSERT (id, v, v) VALUES (1, 2, 3)": "the column v is there twice",
    "UPDATE T SET q.zz.v = 1": "q.zz is not the table that changes; write v, or d.v",
    "UPDATE T SET x.v = 1": "x is not the table that changes",
    f"{MATCHED} UPDATE SET s.v = 1": "s is not the table that changes; write v, or d.v",
    f"{NEW} INSERT (id, s.v) VALUES (1, 2)": "s is not the table that changes",
    "UPDATE T SET (v, p) = (1, 'a')": "a value is given to a column; write SET a = 1, b = 2 without",
    "UPDATE T SET": "UPDATE without a value; write SET a = 1",
    f"{MATCHED} UPDATE": "UPDATE without a value; write SET a = s.a, b = 2, or SET *",
    f"{NEW} INSERT": "INSERT without values; write INSERT (a, b) VALUES (s.a, 2), or INSERT *",
    f"{NEW} INSERT DEFAULT VALUES": "INSERT without values",
    f"{NEW} INSERT (id, v) VALUES (1)": "1 values for 2 columns of INSERT",
    "UPDATE T SET v = 2.4": "2.4 is no value of the column v, which is BIGINT; write CAST, round() or another value",
    "UPDATE T SET p = 'a', v = 'x'": "'x' is no value of the column v, which is BIGINT",
    "UPDATE T SET v = 1e20": "1e+20 is no value of the column v",
    f"{MATCHED} UPDATE SET v = 2.4": "2.4 is no value of the column v",
    f"{NEW} INSERT (id, v) VALUES (s.key, 'x')": "'x' is no value of the column v",
    f"{MATCHED} UPDATE SET v = 1 WHERE d.id = 2": "WHERE of a clause; write WHEN MATCHED AND condition THEN",
    f"{MATCHED} DELETE WHEN MATCHED THEN UPDATE SET v = 1": "WHEN number 2 is never reached: the one of its kind",
    MERGE: INCOMPLETE,
    "MERGE INTO T USING changes USING (id) WHEN MATCHED THEN DELETE": "MERGE without ON; write ON t.id = s.id",
    "MERGE INTO T USING changes WHEN MATCHED THEN DELETE": "MERGE without ON",
    f"{MERGE} AND d.id = s.v WHEN MATCHED THEN DELETE": "two values for the column id in ON of MERGE",
    "DELETE FROM T, changes": "DELETE of several tables (write MERGE INTO",
    "UPDATE T, changes SET v = 1": "UPDATE of several tables",
    "UPDATE T TABLESAMPLE (10 PERCENT) SET v = 1": "UPDATE changes the table as it is now; write its name alone",
    "DELETE FROM T FOR VERSION AS OF 0": "DELETE changes the table as it is now",
    "DELETE changes": "DELETE of what is no table; write DELETE FROM name",
    "DELETE FROM T WHERE v": "WHERE takes a condition, this is BIGINT",
}


@pytest.fixture
def env() -> Iterator[Environment]:
    """Return an environment."""
    with Environment({"parallelism.default": "2"}) as found:
        yield found


def test_what_means_nothing_is_refused_before_anything_runs(env: Environment, tmp_path: Path) -> None:
    name = table_of(env, tmp_path, "delta")
    rows = rows_of(env, name)
    alias = {"UPDATE T ": f"UPDATE {name} AS d ", " T ": f" {name} ", " T,": f" {name},"}
    for text, said in WRONG.items():
        written = text
        for old, new in alias.items():
            written = written.replace(old, new)
        with pytest.raises(EngineError) as caught:
            env.sql(written)
        place, found = str(caught.value).split(": ", 2)[1:] if "column" in str(caught.value)[:20] else ("", "")
        shown = found or str(caught.value).removeprefix("sql: ")
        assert shown.startswith(said), (text, str(caught.value))
        assert place or said.startswith(("UPDATE without", "INSERT without")), text
    assert rows_of(env, name) == rows


@pytest.mark.parametrize("kind", KINDS)
def test_what_may_fail_is_computed_where_the_other_conditions_are_true(
    env: Environment, tmp_path: Path, kind: str
) -> None:
    name = table_of(env, tmp_path, kind)
    condition = "v <> 0 AND 70 / v >= 3"
    kept = env.sql(f"SELECT id FROM {name} WHERE {condition} ORDER BY id").to_arrow()["id"].to_pylist()
    assert kept == [1, 2]
    env.sql(f"UPDATE {name} SET p = 'z' WHERE {condition}")
    assert [row[0] for row in rows_of(env, name) if row[2] == "z"] == kept
    merge = f"MERGE INTO {name} AS d USING (SELECT key - 1 AS id FROM changes) AS s ON d.id = s.id"
    env.sql(f"{merge} WHEN MATCHED AND d.v <> 0 AND 70 / d.v > 2 THEN UPDATE SET v = 70 / d.v")
    assert [row[:2] for row in rows_of(env, name)][:3] == [(0, 0), (1, 7), (2, 20)]
    env.sql(f"DELETE FROM {name} WHERE 70 / nullif(v, 0) >= 3 AND v <> 0 AND v < 20")
    assert [row[0] for row in rows_of(env, name)] == [0, 2, 3, 4, 5, 6, 7]
    with pytest.raises(DataError, match="divide by zero"):
        env.sql(f"DELETE FROM {name} WHERE 70 / v >= 3")


def test_functions_of_python_are_refused_by_name(env: Environment, tmp_path: Path) -> None:
    name = table_of(env, tmp_path, "delta")
    env.register_function("shortened", _shortened)
    for text in (f"UPDATE {name} SET p = shortened(p)", f"DELETE FROM {name} WHERE shortened(p) = 'a'"):
        with pytest.raises(NotYetSupportedError, match="a function of Python in a change"):
            env.sql(text)


def test_values_by_chance_are_refused_by_name(env: Environment, tmp_path: Path) -> None:
    name = table_of(env, tmp_path, "delta")
    for text in (f"UPDATE {name} SET v = random()", f"DELETE FROM {name} WHERE random() < 0"):
        with pytest.raises(NotYetSupportedError, match=r"line 1, column \d+: a value that is another one each time"):
            env.sql(text)


def _shortened(text: str) -> str:
    return text[:1]


def test_values_that_a_column_holds_are_kept(env: Environment, tmp_path: Path) -> None:
    name = table_of(env, tmp_path, "delta")
    env.sql(f"UPDATE {name} SET v = 2.0, p = 5 WHERE id = 1")
    env.sql(f"UPDATE {name} AS d SET d.v = '7' WHERE d.id = 2")
    env.sql(f"UPDATE {name} SET v = NULL WHERE id = 3")
    assert rows_of(env, name)[1:4] == [(1, 2, "5"), (2, 7, "a"), (3, None, "b")]


def test_a_merge_of_python_refuses_constants_that_a_column_cannot_hold(env: Environment, tmp_path: Path) -> None:
    table_of(env, tmp_path, "delta")
    source = env.from_arrow(pa.table({"id": [1], "v": [5]}))
    for value in (2.4, "x", lit(2.4)):
        with pytest.raises(
            SchemaError, match=r"merge_into: when_matched: .* is no value of the column 'v', which is int64"
        ):
            source.merge_into(delta(tmp_path / "t"), "id", when_matched={"set": {"v": value}})
    result = source.merge_into(delta(tmp_path / "t"), "id", when_matched={"set": {"v": col("source.v") + 1}})
    assert result.rows_updated == 1
