"""Commits: once for a job however often they are repeated, against other writers, and after kills at every step."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from engine import Environment
from engine.commit.decision import DecidedFile, DecidedOutput
from engine.commit.output_target import OutputTakenError
from engine.commit.targets import target_named
from engine.config.loader import Configuration
from engine.files.store_access import GivenOptions, StoreAccess
from engine.formats.output_check import staging_of
from engine.graph.source_spec import SinkSpec
from engine.iceberg_tables import table_commit
from engine.iceberg_tables.iceberg_writer import IcebergWriter
from engine.iceberg_tables.write_options import encoded
from engine.iceberg_tables.write_plan import WriteRequest, write_plan
from engine.ids import JobId
from tests.iceberg_tables.handmade import data_files

_ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


def _spec(catalog: Any, mode: str) -> SinkSpec:
    stores = StoreAccess(Configuration(), GivenOptions(), "write_iceberg")
    plan = write_plan(WriteRequest("db.t", catalog, mode, None, None, {}, stores), _ROWS.schema)
    kept = mode if mode in ("append", "overwrite_partitions") else ""
    return SinkSpec("iceberg", plan.options.location, mode == "overwrite", mode=kept, options=encoded(plan.options))


def _staged(spec: SinkSpec, job_id: JobId) -> DecidedOutput:
    """Prepare a job, write a file, and decide."""
    target = target_named("iceberg")
    staging = staging_of(spec, job_id)
    target.prepare(spec, staging, job_id, "")
    name = target.attempt_name("0-00000-abc-00000", "parquet", "")
    writer = IcebergWriter(spec, _ROWS.schema, f"{staging.path}/{name}")
    writer.write(_ROWS.to_batches()[0])
    rows, size, statistics = writer.finish()
    file = DecidedFile(name, name, rows, size, "", statistics)
    mode = spec.mode
    return DecidedOutput(
        0, staging.output, staging.path, spec.overwrite, (file,), mode=mode, kind="iceberg", options=spec.options
    )


def _publish(output: DecidedOutput, job_id: JobId) -> Any:
    return target_named("iceberg").publish(output, job_id, lambda _step: None, is_durable=True)


def test_a_commit_that_is_repeated_is_done_once(catalog: Any) -> None:
    job_id = JobId.random()
    output = _staged(_spec(catalog, "error"), job_id)
    first = _publish(output, job_id)
    assert _publish(output, job_id) == first
    table = catalog.load_table("db.t")
    assert len(table.metadata.snapshots) == 1
    assert table.metadata.current_snapshot().summary["drey.job-id"] == str(job_id)
    target_named("iceberg").clean(output, job_id, lambda _step: None)
    assert table.scan().to_arrow() == _ROWS.cast(table.schema().as_arrow())
    # The folder of the job is part of the table now: nothing removes it.
    target = target_named("iceberg")
    staging = staging_of(_spec(catalog, "append"), job_id)
    assert not target.is_there(staging)
    target.abort(staging, job_id)
    target.sweep(staging.output, "", lambda _job: True)
    assert table.scan().to_arrow().num_rows == 2


def test_an_abort_or_a_sweep_after_a_commit_leaves_its_files(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = JobId.random()
    spec = _spec(catalog, "error")
    output = _staged(spec, job_id)
    _publish(output, job_id)  # and the process ends before it cleans up
    target = target_named("iceberg")
    monkeypatch.setattr("engine.commit.staging.is_dead", lambda _owner: True)
    target.sweep(output.target, "", lambda _job: True)
    assert not target.is_there(staging_of(spec, job_id))
    table = catalog.load_table("db.t")
    assert table.scan().to_arrow().num_rows == 2
    # Also where the snapshot has expired, and another one has the files.
    other = JobId.random()
    output = _staged(_spec(catalog, "append"), other)
    snapshot = _publish(output, other)["snapshot_id"]
    third = JobId.random()
    _publish(_staged(_spec(catalog, "append"), third), third)
    catalog.load_table("db.t").maintenance.expire_snapshots().by_id(snapshot).commit()
    target.abort(staging_of(_spec(catalog, "append"), other), other)
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 6


def test_files_of_a_job_that_did_not_commit_are_swept_by_the_next_one(
    catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = JobId.random()
    spec = _spec(catalog, "error")
    output = _staged(spec, job_id)
    target = target_named("iceberg")
    target.sweep(output.target, "", lambda _job: True)
    assert Path(output.staging).is_dir()  # its process is alive
    monkeypatch.setattr("engine.commit.staging.is_dead", lambda _owner: True)
    target.sweep(output.target, "", lambda _job: True)
    assert not Path(output.target).exists()


def test_a_table_that_another_program_made_is_left_as_it_is(catalog: Any) -> None:
    job_id = JobId.random()
    output = _staged(_spec(catalog, "error"), job_id)
    catalog.create_table("db.t", schema=_ROWS.schema)
    with pytest.raises(OutputTakenError, match="made by another program"):
        _publish(output, job_id)


def test_a_lost_answer_is_not_a_second_commit(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = JobId.random()
    output = _staged(_spec(catalog, "error"), job_id)
    commit = SqlCatalog.commit_table

    def lose(self: Any, *arguments: Any) -> Any:
        monkeypatch.setattr(SqlCatalog, "commit_table", commit)
        commit(self, *arguments)
        raise CommitFailedException("the answer was lost")

    monkeypatch.setattr(SqlCatalog, "commit_table", lose)
    _publish(output, job_id)
    assert len(catalog.load_table("db.t").metadata.snapshots) == 1


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_faster_writer_is_met_by_another_try(catalog: Any, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    table = catalog.create_table("db.t", schema=_ROWS.schema, properties={"commit.retry.num-retries": "0"})
    table.append(_ROWS)
    job_id = JobId.random()
    output = _staged(_spec(catalog, mode), job_id)
    commit = table_commit._commit
    tries: list[int] = []

    def slow(*arguments: Any) -> int:
        if not tries:
            # What the writer loaded is old by the time it commits.
            catalog.load_table("db.t").append(_ROWS)
        tries.append(1)
        return commit(*arguments)

    monkeypatch.setattr(table_commit, "_commit", slow)
    _publish(output, job_id)
    assert len(tries) == 2
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == (6 if mode == "append" else 2)


def test_two_writers_at_once_lose_nothing(catalog: Any) -> None:
    catalog.create_table("db.t", schema=_ROWS.schema)
    errors: list[BaseException] = []

    def write() -> None:
        try:
            for _ in range(5):
                job_id = JobId.random()
                _publish(_staged(_spec(catalog, "append"), job_id), job_id)
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert not errors
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 20


_KILLED = """
import os, sys
import pyarrow as pa
from engine import Environment
from engine.iceberg_tables import table_commit
from pyiceberg.catalog.sql import SqlCatalog

folder, step = sys.argv[1], sys.argv[2]
catalog = SqlCatalog("default", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")

def kill(place, name):
    kept = getattr(place, name)
    def killed(*arguments, **options):
        if step.startswith("behind"):
            kept(*arguments, **options)
        os._exit(9)
    setattr(place, name, killed)

if step.endswith("publish"):
    kill(table_commit, "committed")
elif step.endswith("commit"):
    kill(SqlCatalog, "commit_table")
else:
    from engine.iceberg_tables.iceberg_target import IcebergTarget
    kill(IcebergTarget, "prepare" if step.endswith("prepare") else "clean")
env = Environment(config={"parallelism.default": 2})
env.from_arrow(pa.table({"id": [3, 4, 5]})).write_iceberg("db.t", catalog, mode="overwrite", partition_by="id")
env.execute()
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("side", "place"), [("behind", "prepare"), ("before", "commit"), ("behind", "commit"), ("before", "clean")]
)
def test_a_killed_writer_leaves_the_old_table_or_the_new_one_and_nothing_behind_the_next_job(
    catalog: Any, env: Environment, tmp_path: Path, side: str, place: str
) -> None:
    env.from_arrow(_ROWS).write_iceberg("db.t", catalog, partition_by="id")
    env.execute()
    command = [sys.executable, "-c", _KILLED, str(tmp_path), f"{side} {place}"]
    assert subprocess.run(command, cwd=Path.cwd(), capture_output=True, check=False).returncode == 9
    is_new = place == "clean" or (side == "behind" and place in ("publish", "commit"))
    found = sorted(env.read_iceberg("db.t", catalog).to_arrow()["id"].to_pylist())
    assert found == ([3, 4, 5] if is_new else [1, 2])
    env.from_arrow(_ROWS).write_iceberg("db.t", catalog, mode="append")
    env.execute()
    assert sorted(env.read_iceberg("db.t", catalog).to_arrow()["id"].to_pylist()) == sorted([*found, 1, 2])
    kept = {path.removeprefix("file://") for path in data_files(catalog.load_table("db.t"))}
    first = {path.removeprefix("file://") for path in _all_files(catalog)}
    there = {str(each) for each in (tmp_path / "warehouse").rglob("data/**/*") if each.is_file()}
    assert kept <= there <= first


def _all_files(catalog: Any) -> list[str]:
    table = catalog.load_table("db.t")
    return list(table.inspect.all_files()["file_path"].to_pylist())
