"""MERGE INTO, UPDATE and DELETE change tables of Delta and Iceberg as their words say; other names are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine import Environment
from engine.errors import DataError, NotYetSupportedError, PlanError
from tests.sampling import first

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

KINDS = first("delta", "merge-on-read", "copy-on-write")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Return the kind of the table that is changed."""
    found: str = request.param
    return found


@pytest.fixture
def env() -> Iterator[Environment]:
    """Return an environment."""
    with Environment({"parallelism.default": "2"}) as found:
        yield found


@pytest.fixture
def table(env: Environment, tmp_path: Path, kind: str) -> str:
    """Return the name of a table with the columns id, v and P in SQL."""
    return table_of(env, tmp_path, kind)


def table_of(env: Environment, folder: Path, kind: str) -> str:
    """Make a table, and return its name."""
    rows = env.from_arrow(pa.table({"id": range(8), "v": [10 * k for k in range(8)], "P": ["a", "b"] * 4}))
    env.register(
        "changes", env.from_arrow(pa.table({"key": [1, 2, 20], "v": [111, 222, 999], "gone": [False, True, False]}))
    )
    if kind == "delta":
        rows.write_delta(folder / "t", partition_by="P")
        env.execute()
        return f'delta."{folder}/t"'
    modes = {f"write.{word}.mode": kind for word in ("merge", "update", "delete")}
    (folder / "lake").mkdir()
    env.attach("lake", str(folder / "lake"))
    env.catalogs["lake"].create_namespace("db")
    rows.write_iceberg("db.t", env.catalogs["lake"], partition_by=["P"], properties=modes)
    env.execute()
    return "lake.db.t"


def rows_of(env: Environment, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table."""
    return [tuple(row) for row in env.sql(f"SELECT id, v, P FROM {table} ORDER BY id").collect()]


def counts(found: Any) -> tuple[Any, ...]:
    """Return rows inserted, updated and deleted."""
    return tuple(found.collect()[0])[:3]


def test_merge(env: Environment, table: str) -> None:
    found = env.sql(f"""
        MERGE INTO {table} AS t USING (SELECT * FROM changes WHERE v > 0) AS s ON t.id = s.key
        WHEN MATCHED AND s.gone THEN DELETE
        WHEN MATCHED THEN UPDATE SET v = t.v + s.v, p = upper(t.p)
        WHEN NOT MATCHED THEN INSERT (id, V) VALUES (s.key, s.v + 1)
        WHEN NOT MATCHED BY SOURCE AND t.v >= 60 THEN UPDATE SET v = -t.v
        WHEN NOT MATCHED BY SOURCE AND t.v = 0 THEN DELETE
    """)
    assert counts(found) == (1, 3, 2)
    wanted = [(1, 121, "B"), (3, 30, "b"), (4, 40, "a"), (5, 50, "b"), (6, -60, "a"), (7, -70, "b"), (20, 1000, None)]
    assert rows_of(env, table) == wanted


def test_merge_by_names_and_clauses_that_do_nothing(env: Environment, table: str) -> None:
    text = f"""
        MERGE INTO {table} t USING (SELECT key AS ID, v, gone FROM changes) AS s ON s.id = t.id
        WHEN MATCHED AND s.id = 1 THEN DO NOTHING WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
    """
    assert counts(env.sql(text)) == (1, 1, 0)
    rows = rows_of(env, table)
    assert rows[1:3] == [(1, 10, "b"), (2, 222, "a")]
    assert rows[-1] == (20, 999, None)


def test_update_and_delete(env: Environment, table: str) -> None:
    assert counts(env.sql(f"UPDATE {table} AS x SET v = x.v + $1, p = 'c' WHERE id IN (1, 2) OR v = 70", [5])) == (
        0,
        3,
        0,
    )
    assert counts(env.sql(f"DELETE FROM {table} WHERE P = 'b' AND v < 40")) == (0, 0, 1)
    assert counts(env.sql(f"DELETE FROM {table} WHERE id = 99")) == (0, 0, 0)
    wanted = [(0, 0, "a"), (1, 15, "c"), (2, 25, "c"), (4, 40, "a"), (5, 50, "b"), (6, 60, "a"), (7, 75, "c")]
    assert rows_of(env, table) == wanted
    # a condition that is null is not true
    assert counts(env.sql(f"DELETE FROM {table} WHERE NULLIF(v, 15) > 40")) == (0, 0, 3)
    assert counts(env.sql(f"UPDATE {table} SET v = 1")) == (0, 4, 0)
    assert counts(env.sql(f"DELETE FROM {table}")) == (0, 0, 4)
    assert rows_of(env, table) == []


def test_two_rows_of_the_source_for_one_are_an_error(env: Environment, table: str) -> None:
    with pytest.raises(DataError, match="2 rows of the source have the key id=1"):
        env.sql(
            f"MERGE INTO {table} t USING (VALUES (1, 5), (1, 6)) AS s(id, v) ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET v = s.v"
        )
    assert len(rows_of(env, table)) == 8


def test_other_names_of_a_delta_table(env: Environment, tmp_path: Path) -> None:
    name = table_of(env, tmp_path, "delta")
    env.register("orders", env.read_delta(tmp_path / "t"))
    assert counts(env.sql("DELETE FROM orders WHERE id = 0")) == (0, 0, 1)
    assert counts(env.sql(f"DELETE FROM delta.`{tmp_path}/t` WHERE id = 1", dialect="spark")) == (0, 0, 1)
    assert len(rows_of(env, name)) == 6


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("DELETE FROM Orders WHERE id < 3", 5),
        ("UPDATE orders SET v = 0 WHERE id = 7", 8),
        (
            "MERGE INTO orders AS t USING changes AS s ON t.id = s.key"
            " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.key, s.v)",
            9,
        ),
    ],
)
def test_a_registered_name_that_is_changed_has_the_new_rows(
    env: Environment, tmp_path: Path, text: str, count: int
) -> None:
    name = table_of(env, tmp_path, "delta")
    before = env.read_delta(tmp_path / "t")
    env.register("orders", before)
    env.register("others", env.read_delta(tmp_path / "t"))
    env.sql(text)
    assert rows_of(env, "orders") == rows_of(env, name)
    assert len(rows_of(env, "orders")) == count
    assert len(rows_of(env, "others")) == before.count() == 8
    assert env.sql("UPDATE orders SET v = -1").collect()[0][1] == count
    assert {row[1] for row in rows_of(env, "orders")} == {-1}


@pytest.mark.parametrize("has_vectors", ["false", "true"])
def test_changes_are_kept(env: Environment, tmp_path: Path, has_vectors: str) -> None:
    pytest.importorskip("pyroaring")
    place = tmp_path / "t"
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": has_vectors}
    rows = env.from_arrow(pa.table({"id": [1, 2, 3], "v": [1, None, 3], "p": ["a", "a", "b"]}))
    rows.write_delta(place, partition_by="p", properties=properties)
    env.execute()
    assert counts(env.sql(f"UPDATE delta.\"{place}\" SET v = id + 10, p = 'c' WHERE id > 1")) == (0, 2, 0)
    assert counts(env.sql(f'DELETE FROM delta."{place}" WHERE id = 2')) == (0, 0, 1)
    assert counts(env.sql(f'UPDATE delta."{place}" SET v = 7 WHERE id > 9')) == (0, 0, 0)
    found = env.read_changes(place, since=1).to_arrow().to_pylist()
    names = ("_commit_version", "id", "_change_type", "v", "p")
    assert sorted(tuple(row[name] for name in names) for row in found) == [
        (1, 2, "update_postimage", 12, "c"),
        (1, 2, "update_preimage", None, "a"),
        (1, 3, "update_postimage", 13, "c"),
        (1, 3, "update_preimage", 3, "b"),
        (2, 2, "delete", 12, "c"),
    ]
    assert rows_of(env, f'delta."{place}"') == [(1, 1, "a"), (3, 13, "c")]


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("DELETE FROM changes", PlanError, "line 1, column 13: DELETE of changes: it is no table of Delta"),
        ("DELETE FROM nothing", PlanError, "no table nothing"),
        ("DELETE FROM T WHERE id IN (SELECT key FROM changes)", NotYetSupportedError, "a query within a condition"),
        ("DELETE FROM T USING changes WHERE id = key", NotYetSupportedError, "USING of DELETE"),
        ("DELETE FROM T WHERE id = 1 RETURNING *", NotYetSupportedError, "RETURNING of DELETE"),
        ("UPDATE T SET v = c.v FROM changes c", NotYetSupportedError, "FROM of UPDATE"),
        ("UPDATE T SET w = 1", PlanError, r"the table has no column w.*it has id, v, P"),
        ("UPDATE T SET v = nothing", PlanError, "no column nothing"),
        ("UPDATE T SET v = sum(v)", PlanError, "line 1, column .*: an aggregate in a change; its value is not that of"),
        ("DELETE FROM T WHERE sum(v) > 1", PlanError, "an aggregate in a change"),
        ("UPDATE T SET v = DEFAULT", NotYetSupportedError, "column .*: the word DEFAULT"),
        (
            "MERGE INTO T t USING changes s ON t.id = s.key WHEN NOT MATCHED THEN INSERT (id) VALUES (DEFAULT)",
            NotYetSupportedError,
            "the word DEFAULT",
        ),
        (
            "MERGE INTO T t USING changes s ON FALSE WHEN MATCHED THEN DELETE",
            NotYetSupportedError,
            "line 1, column .*: ON of MERGE with conditions that are not column of the",
        ),
        (
            "MERGE INTO T t USING changes s ON t.id = s.key WHEN NOT MATCHED AND t.v > 1 THEN INSERT *",
            PlanError,
            "column .*: t.v in WHEN NOT MATCHED, where the target has no row",
        ),
        (
            "MERGE INTO T t USING changes s ON t.id = s.key WHEN NOT MATCHED BY SOURCE AND s.key > 1 THEN DELETE",
            PlanError,
            "column .*: s.key in WHEN NOT MATCHED BY SOURCE, where the source has no row",
        ),
        ("UPDATE T SET v = row_number() OVER (ORDER BY id)", NotYetSupportedError, "window"),
        (
            "MERGE INTO T t USING changes s ON t.id > s.key WHEN MATCHED THEN DELETE",
            NotYetSupportedError,
            "ON of MERGE",
        ),
        (
            "MERGE INTO T t USING (VALUES ('1')) AS s(key) ON s.key = t.id WHEN MATCHED THEN DELETE",
            PlanError,
            r"line 1, column .*: ON of MERGE: the column id is BIGINT and its value VARCHAR.* CAST\(... AS BIGINT\)$",
        ),
        ("MERGE INTO T t USING changes s ON t.id = 1 WHEN MATCHED THEN DELETE", NotYetSupportedError, "ON of MERGE"),
        (
            "MERGE INTO T t USING changes s ON t.id = s.key WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2)",
            PlanError,
            "2 values for 1 columns",
        ),
        (
            "MERGE INTO T t USING changes s ON t.id = s.key WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)",
            PlanError,
            "t.id",
        ),
        (
            "MERGE INTO T t USING changes s ON t.id = s.key WHEN NOT MATCHED THEN DELETE",
            PlanError,
            "NOT MATCHED INSERT",
        ),
    ],
)
def test_what_is_refused(env: Environment, tmp_path: Path, text: str, error: type[Exception], match: str) -> None:
    name = table_of(env, tmp_path, "delta")
    with pytest.raises(error, match=match):
        env.sql(text.replace(" T ", f" {name} "))
    assert len(rows_of(env, name)) == 8


def test_statements_around_a_change_are_refused() -> None:
    from engine.statements.statements import statement

    for text in (
        "EXPLAIN DELETE FROM t",
        "CREATE VIEW x AS UPDATE t SET a = 1",
        "COPY (MERGE INTO t USING s ON a = b) TO 'x.csv'",
    ):
        with pytest.raises(PlanError, match="stands alone"):
            statement(text)


def test_spark_changes_no_table(tmp_path: Path) -> None:
    with Environment(target="spark") as env, pytest.raises(NotYetSupportedError, match="DELETE on target spark"):
        env.sql(f'DELETE FROM delta."{tmp_path}"')
