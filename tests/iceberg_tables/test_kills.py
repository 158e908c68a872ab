"""Processes that are killed while they merge: a table has all changes or none, and the next job leaves nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from engine import Environment, iceberg
from tests.iceberg_tables.handmade import local
from tests.tidy.imports import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

SCRIPT = """
import os
import signal
import sys

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from engine import Environment, iceberg
from engine.iceberg_tables import iceberg_target, table_commit
from engine.parquet import patched_file

uri, warehouse, point, mode = sys.argv[1:]
if mode == "patched":
    patched_file._FILE_BYTES_MIN = 0


def killed(call, is_before):
    def calls(*args, **options):
        result = None if is_before else call(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)
        return result

    return calls


target = iceberg_target.IcebergTarget
if point == "prepared":
    target.prepare = killed(target.prepare, False)
elif point == "before the commit":
    table_commit._commit = killed(table_commit._commit, True)
elif point == "behind the files of deletes":
    table_commit.delete_files = killed(table_commit.delete_files, False)
elif point == "behind the commit":
    table_commit._commit = killed(table_commit._commit, False)
elif point == "cleaned":
    target.clean = killed(target.clean, False)
catalog = SqlCatalog("default", uri=uri, warehouse=warehouse)
with Environment({"parallelism.default": "2"}) as env:
    rows = env.from_arrow(pa.table({"id": range(50, 150), "v": [1] * 100}))
    rows.merge_into(iceberg("db.t", catalog), on="id")
"""


@pytest.mark.parametrize("mode", ["copy-on-write", "patched", "merge-on-read"])
@pytest.mark.parametrize(
    "point", ["prepared", "before the commit", "behind the files of deletes", "behind the commit", "cleaned"]
)
def test_a_kill_at_a_point(env: Environment, catalog: Any, tmp_path: Path, mode: str, point: str) -> None:
    rows = pa.table({"id": range(100), "v": [0] * 100})
    env.from_arrow(rows).write_iceberg(
        "db.t",
        catalog,
        partition_by=["bucket(4, id)"],
        properties={"write.merge.mode": "copy-on-write" if mode == "patched" else mode},
    )
    env.execute()
    places = [f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"]
    command = [sys.executable, "-c", SCRIPT, *places, point, mode]
    assert subprocess.run(command, cwd=ROOT, check=False, timeout=120).returncode == -9
    table = catalog.load_table("db.t")
    is_done = point in ("behind the commit", "cleaned")
    found = table.scan().to_arrow()
    assert (len(found), sum(found["v"].to_pylist())) == ((150, 100) if is_done else (100, 0))
    env.from_arrow(pa.table({"id": [-1], "v": [0]})).write_iceberg("db.t", catalog, mode="append")
    env.execute()
    table = catalog.load_table("db.t")
    assert len(table.scan().to_arrow()) == (151 if is_done else 101)
    known = {local(each["file_path"]) for each in table.inspect.all_files().to_pylist()}
    folder = Path(local(table.location())) / "data"
    # what was committed and not cleaned may lie there beside its own files, but no note of its job
    assert [path for path in folder.iterdir() if path.name.startswith(".drey-")] == []
    left = {os.fspath(path) for path in folder.rglob("*") if path.is_file()}
    assert known <= left
    assert is_done or left == known


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_merges_after_one_another_keep_their_memory(env: Environment, catalog: Any, mode: str) -> None:
    rows = pa.table({"id": range(2000), "v": [0] * 2000})
    env.from_arrow(rows).write_iceberg("db.t", catalog, properties={"write.merge.mode": mode})
    env.execute()
    sizes = []
    for trial in range(16):
        changes = pa.table({"id": range(trial * 50, trial * 50 + 1000), "v": [trial] * 1000})
        env.from_arrow(changes).merge_into(iceberg("db.t", catalog), on="id")
        sizes.append(psutil.Process().memory_info().rss)
    found = env.read_iceberg("db.t", catalog).to_arrow()
    assert sorted(found["id"].to_pylist()) == list(range(2000))
    assert sizes[-1] < sizes[6] + (32 << 20)
