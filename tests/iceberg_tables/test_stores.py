"""Tables whose metadata and files lie in a store: pyiceberg reads the metadata, the engine the files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from engine import Environment, col, iceberg
from engine.commit.targets import target_named
from engine.ids import JobId
from engine.storage.file_systems import file_system_of
from tests.iceberg_tables.handmade import data_files
from tests.storage.moto_server import KEYS, REGION, Store, running

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """Return a store with the bucket data."""
    with running("data") as found:
        yield found


@pytest.fixture
def catalog(store: Store, tmp_path: Path) -> Iterator[Any]:
    """Return a catalog whose tables are in the store."""
    properties: dict[str, Any] = {
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"s3://data/{tmp_path.name}",
        "s3.endpoint": store.endpoint,
        "s3.region": REGION,
        "s3.access-key-id": KEYS["access_key_id"],
        "s3.secret-access-key": KEYS["secret_access_key"],
    }
    found = SqlCatalog("lake", **properties)
    found.create_namespace("db")
    yield found
    found.close()


@pytest.fixture
def env(store: Store) -> Iterator[Environment]:
    """Return an environment with the store's settings."""
    with Environment(config={**store.settings, "parallelism.default": 2}) as found:
        yield found


def names_in(place: str) -> list[str]:
    """Return the names of all files at a place."""
    return [name for _, _, names in file_system_of(place).walk(place) for name in names]


def test_a_table_in_a_store_is_read_and_its_files_are_pruned(env: Environment, catalog: Any) -> None:
    table = catalog.create_table("db.t", schema=pa.schema([("id", pa.int64())]))
    for first in (0, 10):
        table.append(pa.table({"id": range(first, first + 10)}))
    assert all(path.startswith("s3://data/") for path in data_files(table))
    rows = env.read_iceberg("db.t", catalog).filter(col("id") >= 15)
    text = rows.explain()
    assert "reads 1 of 2 files" in text
    assert sorted(rows.to_arrow()["id"].to_pylist()) == [15, 16, 17, 18, 19]
    assert KEYS["secret_access_key"] not in text


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_table_in_a_store_is_written_and_changed(env: Environment, catalog: Any, mode: str) -> None:
    rows = pa.table({"id": range(20), "p": ["a b", "x/y"] * 10})
    env.from_arrow(rows).write_iceberg(
        "db.t", catalog, partition_by=["p", "bucket(2, id)"], properties={"write.merge.mode": mode}
    )
    env.execute()
    changes = env.from_arrow(pa.table({"id": [2, 40], "p": ["new", None]}))
    assert changes.merge_into(iceberg("db.t", catalog), "id")[:3] == (1, 1, 0)
    table = catalog.load_table("db.t")
    wanted = [(k, "new" if k == 2 else ("a b", "x/y")[k % 2]) for k in range(20)]
    assert sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist()) == [*wanted, (40, None)]
    assert sorted(map(tuple, env.read_iceberg("db.t", catalog).collect())) == [*wanted, (40, None)]
    kept = [each["file_path"].rpartition("/")[2] for each in table.inspect.all_files().to_pylist()]
    assert sorted(names_in(f"{table.location()}/data")) == sorted({*kept})


def test_a_catalog_that_is_a_folder_of_a_store(env: Environment, store: Store) -> None:
    place = "s3://data/folder"
    env.from_arrow(pa.table({"id": [1, 2]})).write_iceberg("db.t", place)
    env.from_arrow(pa.table({"id": [1]})).write_iceberg("db.other", place)
    env.execute()
    assert env.from_arrow(pa.table({"id": [2, 3]})).merge_into(iceberg("db.t", place), "id")[:3] == (1, 1, 0)
    env.attach("lake", place)
    assert sorted(env.sql("SELECT id FROM lake.db.t").to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert "v2.metadata.json" in names_in(f"{place}/db/t/metadata")


def test_files_of_a_job_that_did_not_commit_are_removed(env: Environment, catalog: Any) -> None:
    env.from_arrow(pa.table({"id": [1]})).write_iceberg("db.t", catalog)
    env.execute()
    table = catalog.load_table("db.t")
    version = iceberg("db.t", catalog).at_present("merge_into", env.configuration)
    spec = version.rewrite([], merges=False, changes_data=True).spec
    target, job_id = target_named("iceberg"), JobId.random()
    staging = target.staging(table.location(), job_id)
    target.prepare(spec, staging, job_id, "cluster")
    file_system_of(staging.path).replace(f"{staging.path}/0.parquet", b"PAR1")
    assert target.is_there(staging) and target.is_of_cluster(staging, "cluster")
    target.sweep(table.location(), "cluster", lambda _: False)
    assert len(names_in(f"{table.location()}/data")) == 3
    target.sweep(table.location(), "cluster", lambda _: True)
    assert len(names_in(f"{table.location()}/data")) == 1
