"""Every verb on tables of every catalog: SQL in SQLite and in a real PostgreSQL, REST, and a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from engine import Environment, iceberg
from engine.errors import PlanError
from engine.iceberg_tables.folder_catalog import FolderCatalog
from tests.iceberg_tables.rest_server import serving
from tests.postgresql_server import postgresql

pytestmark = pytest.mark.thorough

Rows = dict[int, tuple[int, str | None]]


def _sql(uri: str, folder: Path, stack: ExitStack) -> Any:
    found = load_catalog("lake", type="sql", uri=uri, warehouse=f"file://{folder}/lake")
    stack.callback(found.close)
    return found


def _sqlite(folder: Path, stack: ExitStack) -> Any:
    return _sql(f"sqlite:///{folder}/lake.db", folder, stack)


def _postgresql(folder: Path, stack: ExitStack) -> Any:
    pytest.importorskip("psycopg")
    uri = stack.enter_context(postgresql())
    return _sql(uri.replace("postgresql:", "postgresql+psycopg:"), folder, stack)


def _rest(folder: Path, stack: ExitStack) -> Any:
    (folder / "lake").mkdir()
    inner = FolderCatalog(f"{folder}/lake")
    inner.create_namespace("db")
    uri, _ = stack.enter_context(serving(inner))
    return load_catalog("lake", type="rest", uri=uri)


def _folder(folder: Path, stack: ExitStack) -> Any:
    return f"{folder}/lake"


@pytest.fixture(params=[_sqlite, _postgresql, _rest, _folder], ids=lambda made: made.__name__.strip("_"))
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Return a catalog with the namespace db."""
    with ExitStack() as stack:
        found = request.param(tmp_path, stack)
        if isinstance(found, str):
            Path(found, "db").mkdir(parents=True)
        elif not found.namespace_exists("db"):
            found.create_namespace("db")
        yield found


def _table(rows: Rows) -> pa.Table:
    values = [(key, v, p) for key, (v, p) in rows.items()]
    columns = [pa.array([row[place] for row in values], kind) for place, kind in enumerate((pa.int64(),) * 2)]
    return pa.table([*columns, pa.array([row[2] for row in values], pa.string())], names=["id", "v", "p"])


def _write(mode: str, **options: Any) -> Callable[[Environment, Any, Rows], Any]:
    def call(env: Environment, lake: Any, rows: Rows) -> Any:
        env.from_arrow(_table(rows)).write_iceberg("db.t", lake, mode=mode, **options)
        return env.execute()

    return call


def _merge(env: Environment, lake: Any, rows: Rows) -> Any:
    return env.from_arrow(_table(rows)).merge_into(iceberg("db.t", lake), "id")


def _query(text: str) -> Callable[[Environment, Any, Rows], Any]:
    return lambda env, _lake, _rows: env.sql(text).collect()


def _optimize(env: Environment, lake: Any, _rows: Rows) -> Any:
    return env.optimize(iceberg("db.t", lake), sort_by="id")


FIRST: Rows = {key: (key % 4, "ab"[key % 2]) for key in range(12)}
#: Calls in order: the verb, its rows, and the rows of the table behind it.
VERBS: list[tuple[str, Callable[[Environment, Any, Rows], Any], Rows, Callable[[Rows, Rows], Rows]]] = [
    ("make", _write("error", partition_by=["p", "bucket(2, id)"]), FIRST, lambda old, new: new),
    ("append", _write("append"), {20: (0, "c"), 21: (1, None)}, lambda old, new: old | new),
    ("merge", _merge, {3: (9, "c"), 30: (3, "a")}, lambda old, new: old | new),
    (
        "UPDATE",
        _query("UPDATE lake.db.t SET v = v + 10 WHERE id < 2"),
        {},
        lambda old, _: {key: (v + 10 * (key < 2), p) for key, (v, p) in old.items()},
    ),
    (
        "DELETE",
        _query("DELETE FROM lake.db.t WHERE p = 'c'"),
        {},
        lambda old, _: {key: row for key, row in old.items() if row[1] != "c"},
    ),
    ("optimize", _optimize, {}, lambda old, _: old),
    (
        "overwrite_partitions",
        _write("overwrite_partitions"),
        {50: (1, None), 51: (2, None)},
        lambda old, new: {key: row for key, row in old.items() if row[1] is not None} | new,
    ),
    ("overwrite", _write("overwrite"), {1: (1, "z")}, lambda old, new: new),
]


def test_every_verb(env: Environment, lake: Any) -> None:
    env.attach("lake", lake)
    opened = FolderCatalog(lake) if isinstance(lake, str) else lake
    there: Rows = {}
    states: list[tuple[int, Rows]] = []
    for name, call, rows, expected in VERBS:
        call(env, lake, rows)
        there = expected(there, rows)
        wanted = [(key, *row) for key, row in sorted(there.items())]
        table = opened.load_table("db.t")
        others = sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=lambda row: row[0])
        assert others == wanted, name
        assert sorted(map(tuple, env.read_iceberg("db.t", lake).collect())) == wanted, name
        assert sorted(map(tuple, env.sql("SELECT * FROM lake.db.t").collect())) == wanted, name
        states.append((table.metadata.current_snapshot_id, dict(there)))
    with pytest.raises(PlanError, match="the table is there"):
        _write("error")(env, lake, FIRST)
    for snapshot_id, rows in states:
        found = env.read_iceberg("db.t", lake, snapshot_id=snapshot_id).collect()
        assert sorted(map(tuple, found)) == [(key, *row) for key, row in sorted(rows.items())]
    changed = env.read_changes(iceberg("db.t", lake), states[5][0]).select("_change_type", "id").collect()
    replaced = [("delete", 21), ("insert", 50), ("insert", 51)]
    assert sorted(changed) == sorted([*replaced, *(("delete", key) for key in states[6][1]), ("insert", 1)])
