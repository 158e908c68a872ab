"""A cluster reads and writes tables; a JobManager that is killed at the commit leaves it to the next one, once."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from engine.iceberg_tables.folder_catalog import FolderCatalog
from tests.chaos.cluster import ChaosCluster
from tests.iceberg_tables.handmade import add_deletes, data_files, local, position_deletes
from tests.tidy.imports import ROOT

pytestmark = pytest.mark.processes

_JOB = ROOT / "tests" / "iceberg_tables" / "write_table.py"
_START = datetime(2024, 1, 1)


@pytest.mark.parametrize("point", ["sink.decided", "sink.published"])
def test_a_leader_that_is_killed_at_the_commit_leaves_it_to_the_next_one(tmp_path: Path, point: str) -> None:
    lake = tmp_path / "lake"
    catalog = FolderCatalog(str(lake))
    catalog.create_namespace("db")
    times = [_START + timedelta(hours=each) for each in range(100)]
    rows = pa.table({"id": pa.array(range(100), pa.int64()), "ts": pa.array(times, pa.timestamp("us"))})
    source = catalog.create_table("db.source", schema=rows.schema)
    source.append(rows)
    add_deletes(source, [position_deletes(source, [(data_files(source)[0], 50)])])
    settings = {
        "high-availability.storageDir": tmp_path / "storage",
        "debug.fault-point": f"{point}:kill:{tmp_path / 'marker'}",
    }
    with ChaosCluster(tmp_path / "cluster", **settings) as cluster:
        job = cluster.submit(_JOB, lake)
        cluster.wait_until((tmp_path / "marker").exists, "the fault")
        cluster.script("jobmanager", "start")
        assert job.wait() == 0, job.stderr
        assert cluster.run("ha", "gc", "--json").stdout == '{"orphans": [], "size_bytes": 0}\n'
    table = catalog.load_table("db.t")
    assert len(table.metadata.snapshots) == 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [each for each in range(10, 100) if each != 50]
    there = {str(each) for each in (lake / "db" / "t" / "data").rglob("*") if each.is_file()}
    assert there == {local(path) for path in data_files(table)}
