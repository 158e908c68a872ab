"""The outputs of a job from staging to its record: decided once, published once, recorded once."""

from pathlib import Path

import msgspec
import pytest

from engine.commit.result_record import JobResultRecord
from engine.connectors.records_manifest import RecordsColumn, RecordsFile, read_manifest
from engine.connectors.records_parts import PartColumn, PartStatistics
from engine.errors import FencedError, JobExecutionError, PlanError
from engine.gateways.job_details import JobDetails
from engine.gateways.messages import JobOutcome, JobOverview
from engine.graph.deployment import StagedFile, Staging
from engine.graph.source_spec import SinkSpec
from engine.jobmaster.job_commit import JobCommit, JobEnd
from tests.jobmaster.folder_storage import FolderStorage
from tests.jobmaster.job_graphs import job_graph


def end_of(graph, status, runtime_ms, epoch=1):
    record = JobResultRecord(graph.job_id, graph.name, status, epoch, runtime_ms)
    return JobEnd(
        record,
        JobOverview(graph.job_id, graph.name, status, 0, runtime_ms),
        JobOutcome(graph.job_id, graph.name, status, runtime_ms, ()),
        JobDetails(graph.job_id, graph.name, status, 0, runtime_ms, {}, ()),
    )


def job_commit(graph, tmp_path, epoch=1, staging=None, is_leading=True):
    storage = FolderStorage(tmp_path / "storage", graph.job_id)
    return JobCommit(graph, epoch, lambda: is_leading, storage, staging)


def committed(graph, tmp_path, epoch=1):
    commit = job_commit(graph, tmp_path, epoch)
    staging = commit.prepare()
    for place in staging.values():
        Path(place.path, "0-00000-x.csv").write_text("1\n")
    commit.commit([StagedFile(0, 0, "0-00000-x.csv", 1, 2)])
    return commit


def test_a_finished_job_is_published_then_recorded_and_its_decision_goes(tmp_path):
    graph = job_graph([1], sinks={0: SinkSpec("csv", str(tmp_path / "out"))})
    commit = committed(graph, tmp_path)
    storage = tmp_path / "storage"
    assert (tmp_path / "out" / "part-00000.csv").read_text() == "1\n"
    assert [path.name for path in (storage / "decisions").iterdir()] == [f"{graph.job_id}.json"]
    commit.record(end_of(graph, "FINISHED", 12))
    assert list((storage / "decisions").iterdir()) == []
    record = FolderStorage(storage, graph.job_id).ended()
    assert (record.status, record.epoch, record.runtime_ms) == ("FINISHED", 1, 12)


def test_records_get_their_manifest_with_the_decision(tmp_path):
    graph = job_graph([1], sinks={0: SinkSpec("records", str(tmp_path / "out"), schema_ipc=b"schema")})
    commit = job_commit(graph, tmp_path)
    Path(commit.prepare()[0].path, "0-00000-x.parquet").write_bytes(b"rows")
    column = PartColumn(1, 5, null_count=0, heavy_keys=(("1", 0.5),))
    statistics = msgspec.json.encode(PartStatistics(7, row_count=10, columns={"k": column})).decode()
    commit.commit([StagedFile(0, 0, "0-00000-x.parquet", 10, 4, statistics)])
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"part-00000.parquet", "_manifest.json"}
    manifest = read_manifest(tmp_path / "out")
    assert manifest.schema == b"schema"
    assert manifest.files == (RecordsFile("part-00000.parquet", 10, 4, 7),)
    assert manifest.columns["k"] == RecordsColumn(1, 5, 0, None, (("1", 0.5),))
    decision = FolderStorage(tmp_path / "storage", graph.job_id).decision()
    assert decision.outputs[0].texts[0].content.encode() == (tmp_path / "out" / "_manifest.json").read_bytes()


def test_a_subtask_with_several_files_is_one_that_has_ended_and_its_files_stay_in_their_order(tmp_path):
    graph = job_graph([2], sinks={0: SinkSpec("csv", str(tmp_path / "out"))})
    commit = job_commit(graph, tmp_path)
    staging = Path(commit.prepare()[0].path)
    names = ["0-00001-z-00000.csv", "0-00001-z-00001.csv", "0-00000-y-00000.csv"]
    for name in names:
        (staging / name).write_text(name)
    files = [StagedFile(0, int(name[2:7]), name, 1, 2) for name in names]
    with pytest.raises(JobExecutionError, match="staged files of 1 of 2 subtasks"):
        commit.commit(files[:2])
    commit.commit(files)
    parts = sorted((tmp_path / "out").iterdir())
    assert [part.name for part in parts] == ["part-00000.csv", "part-00001.csv", "part-00002.csv"]
    assert [part.read_text() for part in parts] == sorted(names)
    assert not staging.exists()


def test_a_recorded_job_does_not_run_again_also_under_a_later_leader(tmp_path):
    graph = job_graph([1], sinks={0: SinkSpec("csv", str(tmp_path / "out"), overwrite=True)})
    committed(graph, tmp_path).record(end_of(graph, "FINISHED", 12))
    with pytest.raises(PlanError, match="has run before: it is FINISHED"):
        job_commit(graph, tmp_path, 2).prepare()


def test_a_leader_of_an_older_epoch_cannot_record_what_a_later_one_has(tmp_path):
    graph = job_graph([1], sinks={0: SinkSpec("csv", str(tmp_path / "out"))})
    old = job_commit(graph, tmp_path)
    job_commit(graph, tmp_path, 2).record(end_of(graph, "CANCELED", 5, 2))
    with pytest.raises(FencedError):
        old.record(end_of(graph, "FINISHED", 9))


def test_staging_that_another_leader_made_is_found_where_it_said(tmp_path):
    graph = job_graph([1], sinks={0: SinkSpec("csv", str(tmp_path / "out"))})
    staging = job_commit(graph, tmp_path).prepare()
    moved = tmp_path / "elsewhere"
    Path(staging[0].path).rename(moved)
    later = job_commit(graph, tmp_path, 2)
    later.adopt({0: Staging(str(moved), str(tmp_path / "out"))})
    (moved / "0-00000-x.csv").write_text("1\n")
    later.commit([StagedFile(0, 0, "0-00000-x.csv", 1, 2)])
    assert (tmp_path / "out" / "part-00000.csv").read_text() == "1\n" and not moved.exists()


def test_staging_of_a_job_that_is_not_prepared_again_is_removed(tmp_path):
    graph = job_graph([1], sinks={0: SinkSpec("csv", str(tmp_path / "out"))})
    staging = job_commit(graph, tmp_path).prepare()
    job_commit(graph, tmp_path, 2, staging).abort()
    assert list(tmp_path.iterdir()) == []
    job_commit(graph, tmp_path).prepare()
    job_commit(graph, tmp_path, 2).abort()
    assert list(tmp_path.iterdir()) == []


def test_who_leads_no_more_prepares_adopts_decides_and_records_nothing(tmp_path):
    graph = job_graph([1], sinks={0: SinkSpec("csv", str(tmp_path / "out"))})
    stale = job_commit(
        graph, tmp_path, staging={0: Staging(str(tmp_path / "s"), str(tmp_path / "out"))}, is_leading=False
    )
    for step in (
        stale.prepare,
        lambda: stale.adopt({0: Staging(str(tmp_path / "s"), str(tmp_path / "out"))}),
        lambda: stale.commit([StagedFile(0, 0, "0-00000-x.csv", 1, 2)]),
        lambda: stale.record(end_of(graph, "FAILED", 1)),
    ):
        with pytest.raises(FencedError):
            step()
    assert not (tmp_path / "s").exists() and not (tmp_path / "out").exists()
    assert not list((tmp_path / "storage").rglob("*.json"))
