"""Tables of an attached catalog in SQL: names, versions, and statements about them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.utils.concurrent import ExecutorFactory

from engine import Environment
from engine.cli.sql_session import SqlSession
from engine.errors import EngineError, SchemaError
from engine.iceberg_tables.folder_catalog import FolderCatalog
from engine.minicluster.mini_cluster import close_mini_clusters


@pytest.fixture
def env(tmp_path: Path) -> Iterator[Environment]:
    """Return an environment with a catalog lake, which has sales.orders of two versions, and sales.cities."""
    catalog = FolderCatalog(str(tmp_path / "lake"))
    catalog.create_namespace("sales")
    orders = catalog.create_table("sales.orders", schema=pa.schema([("id", pa.int64()), ("city", pa.string())]))
    orders.append(pa.table({"id": [1], "city": ["Rome"]}))
    orders.manage_snapshots().create_tag(orders.current_snapshot().snapshot_id, "first").commit()
    orders.append(pa.table({"id": [2], "city": ["Oslo"]}))
    catalog.create_table("sales.Cities", schema=pa.schema([("name", pa.string())])).append(pa.table({"name": ["Oslo"]}))
    with Environment(config={"parallelism.default": 1}) as found:
        found.attach("lake", str(tmp_path / "lake"))
        yield found
    close_mini_clusters()
    ExecutorFactory.get_or_create().shutdown()
    ExecutorFactory._instance = None


def test_tables_and_their_versions_are_read_by_name(env: Environment) -> None:
    def rows(text: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = env.sql(text).to_arrow().to_pylist()
        return found

    first = env.catalogs["lake"].load_table("sales.orders").metadata.snapshots[0].snapshot_id
    old = [{"id": 1}]
    assert rows("SELECT id FROM lake.sales.orders ORDER BY id") == [*old, {"id": 2}]
    assert rows(f"SELECT orders.id FROM lake.sales.orders FOR VERSION AS OF {first}") == old
    assert rows("SELECT o.id FROM lake.sales.orders FOR SYSTEM_VERSION AS OF 'first' AS o WHERE o.id < 9") == old
    joined = (
        'SELECT o.id FROM Lake.Sales.Orders o JOIN lake.sales."Cities" ON city = name -- FROM lake.x.y\n'
        "WHERE city <> 'FROM lake.x.y'"
    )
    assert rows(joined) == [{"id": 2}]
    with pytest.raises(EngineError, match="had no snapshot at 1999-01-01"):
        rows("SELECT * FROM lake.sales.orders FOR TIMESTAMP AS OF '1999-01-01'")
    with pytest.raises(EngineError, match="no such table in the catalog"):
        rows("SELECT * FROM lake.sales.nothing")


def test_statements_show_and_describe_tables_of_a_catalog(
    env: Environment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = SqlSession(env, "table")
    session.run(f"ATTACH '{tmp_path}/lake' AS other")
    session.run("SHOW TABLES")
    listed = capsys.readouterr().out.split()
    assert listed == ["lake.sales.Cities", "lake.sales.orders", "other.sales.Cities", "other.sales.orders"]
    session.run("DESCRIBE lake.sales.orders")
    assert capsys.readouterr().out.splitlines() == ["id  int64", "city  string"]


def test_a_name_that_is_none_is_refused(env: Environment) -> None:
    with pytest.raises(SchemaError, match="expected a name of letters"):
        env.attach("my lake", env.catalogs["lake"])
