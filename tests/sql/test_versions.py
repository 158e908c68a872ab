"""Versions of tables in FROM: numbers, names, moments and parameters; what is none of these is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine import Environment
from engine.errors import EngineError

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

NONE = "this is no version of a table; write FOR VERSION AS OF 3"


@pytest.fixture
def env(tmp_path: Path) -> Iterator[Environment]:
    """Return an environment with a Delta table, and an Iceberg table lake.db.t, of two versions each."""
    with Environment(config={"parallelism.default": 1}) as found:
        (tmp_path / "lake").mkdir()
        found.attach("lake", str(tmp_path / "lake"))
        found.catalogs["lake"].create_namespace("db")
        for mode in ("error", "append"):
            rows = found.from_arrow(pa.table({"k": [1]}))
            rows.write_delta(tmp_path / "t", mode=mode)
            rows.write_iceberg("db.t", found.catalogs["lake"], mode=mode)
            found.execute()
        yield found


def count(env: Environment, table: str, params: Any = None, dialect: str | None = None) -> int:
    """Return the number of rows of a table."""
    found: int = env.sql(f"SELECT count(*) AS n FROM {table}", params, dialect).to_arrow()["n"].to_pylist()[0]
    return found


def test_versions_of_a_delta_table(env: Environment, tmp_path: Path) -> None:
    name, later = f'delta."{tmp_path}/t"', datetime.now(UTC) + timedelta(days=1)
    assert [count(env, f"{name} FOR VERSION AS OF {version} AS old") for version in (0, 1)] == [1, 2]
    assert count(env, name) == 2
    assert count(env, f"{name} FOR TIMESTAMP AS OF '2099-01-01'") == 2
    assert count(env, f"{name} FOR TIMESTAMP AS OF TIMESTAMP '2099-01-01 00:00:00'") == 2
    assert count(env, f"{name} FOR VERSION AS OF $1", [0]) == 1
    assert count(env, f"{name} FOR TIMESTAMP AS OF :moment", {"moment": later}) == 2
    assert count(env, f"{name} AT (VERSION => 0)") == 1
    assert count(env, f"delta.`{tmp_path}/t` VERSION AS OF 0", dialect="spark") == 1
    text = f"SELECT count(*) AS n FROM {name} AS a JOIN {name} FOR VERSION AS OF 0 AS b ON a.k = b.k"
    assert env.sql(text).to_arrow()["n"].to_pylist() == [2]


def test_versions_of_an_iceberg_table(env: Environment) -> None:
    first, _ = (one.snapshot_id for one in env.catalogs["lake"].load_table("db.t").snapshots())
    name = "lake.db.t"
    assert count(env, f"{name} FOR VERSION AS OF {first}") == count(env, f"{name} FOR VERSION AS OF $1", [first]) == 1
    assert count(env, f"{name} FOR VERSION AS OF $1", ["main"]) == 2
    assert count(env, f"{name} FOR TIMESTAMP AS OF $1", [date(2099, 1, 1)]) == 2
    assert count(env, f"{name} FOR SYSTEM_TIME AS OF DATE '2099-01-01'") == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("FOR VERSION AS OF 1.5", NONE),
        ("FOR VERSION AS OF x", NONE),
        ("FOR VERSION AS OF", NONE),
        ("FOR TIMESTAMP AS OF now()", NONE),
        ("FOR TIMESTAMP AS OF 5", NONE),
        (
            "FOR TIMESTAMP AS OF 'x'",
            r"line 1, column \d+: 'x' is no moment; write FOR TIMESTAMP AS OF '2026-11-01 12:00",
        ),
        ("FOR SYSTEM_TIME BETWEEN '2020-01-01' AND '2099-01-01'", NONE),
        ("FOR SYSTEM_TIME FROM '2020-01-01' TO '2099-01-01'", NONE),
        ("BEFORE (VERSION => 1)", NONE),
        ("FOR VERSION AS OF 'main'", "'main' is no version of a Delta table; those are numbers"),
        ("FOR VERSION AS OF 7", "7"),
    ],
)
def test_what_is_no_version_is_refused(env: Environment, tmp_path: Path, words: str, said: str) -> None:
    with pytest.raises(EngineError, match=said):
        env.sql(f'SELECT * FROM delta."{tmp_path}/t" {words}')


def test_what_has_no_versions_is_refused(env: Environment) -> None:
    with pytest.raises(EngineError, match="FOR VERSION AS OF of a table of no catalog"):
        env.sql("WITH c AS (SELECT 1 AS a) SELECT * FROM c FOR VERSION AS OF 3")
