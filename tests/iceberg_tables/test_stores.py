"""Tables whose metadata and files lie in a store: pyiceberg reads the metadata, the engine the files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from engine import Environment, col
from engine.errors import NotYetSupportedError
from tests.iceberg_tables.handmade import data_files
from tests.storage.moto_server import KEYS, REGION, Store, running

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """Return a store with the bucket data."""
    with running("data") as found:
        yield found


def test_a_table_in_a_store_is_read_and_its_files_are_pruned(store: Store, tmp_path: Path) -> None:
    properties: dict[str, Any] = {
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": "s3://data/lake",
        "s3.endpoint": store.endpoint,
        "s3.region": REGION,
        "s3.access-key-id": KEYS["access_key_id"],
        "s3.secret-access-key": KEYS["secret_access_key"],
    }
    catalog = SqlCatalog("lake", **properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema=pa.schema([("id", pa.int64())]))
    for first in (0, 10):
        table.append(pa.table({"id": range(first, first + 10)}))
    assert all(path.startswith("s3://data/lake/") for path in data_files(table))
    with Environment(config={**store.settings, "parallelism.default": 1}) as env:
        rows = env.read_iceberg("db.t", catalog).filter(col("id") >= 15)
        text = rows.explain()
        assert "reads 1 of 2 files" in text
        assert sorted(rows.to_arrow()["id"].to_pylist()) == [15, 16, 17, 18, 19]
        assert KEYS["secret_access_key"] not in text
        with pytest.raises(NotYetSupportedError, match="a table whose warehouse is a folder is written"):
            env.from_arrow(pa.table({"id": [1]})).write_iceberg("db.t", catalog, mode="append")
    catalog.close()
