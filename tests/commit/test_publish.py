"""Decide and publish: every step may be the last one before a crash; afterwards the target is old or new, whole."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from engine.commit.decision import (
    DecidedText,
    Decision,
    decode_decision,
    encode_decision,
)
from engine.commit.output_target import OutputTakenError
from engine.commit.publish import publish
from engine.commit.staging import (
    OWNER_FILE,
    StagingOwner,
    adopt_staging,
    create_staging,
    remove_staging,
    staging_path,
    sweep_stale,
)
from engine.errors import CorruptBlockError, JobExecutionError, VersionMismatchError
from engine.graph.deployment import StagedFile
from engine.ids import JobId
from engine.storage.local_folders import LocalFolders
from engine.versions import DECISION
from tests.commit.decided import decided_output

JOB = JobId("c" * 32)


class CrashError(BaseException):
    """The process ends here."""


class CrashAfter:
    def __init__(self, count: int) -> None:
        self.left = count
        self.steps: list[str] = []

    def __call__(self, step: str) -> None:
        self.steps.append(step)
        if len(self.steps) > self.left:
            raise CrashError(step)


def stage(target: Path, sink_index: int, texts: list[str]):
    staging = create_staging(target, JOB)
    staged = []
    for subtask_index, text in enumerate(texts):
        name = f"{sink_index}-{subtask_index:05d}-{'f' * 8}.csv"
        (staging / name).write_text(text)
        staged.append(StagedFile(sink_index, subtask_index, name, 1, len(text)))
    (staging / f"{sink_index}-00000-0ther.csv").write_text("of an attempt that failed")
    return staging, list(reversed(staged))


def prepare(folder: Path, overwrite: bool, outputs: int = 2) -> Decision:
    decided = []
    for sink_index in range(outputs):
        target = folder / f"out-{sink_index}"
        if overwrite:
            target.mkdir()
            (target / "part-00000.csv").write_text("old")
            (target / "part-00009.csv").write_text("old too")
        staging, staged = stage(target, sink_index, ["new 0", "new 1"])
        output = decided_output(sink_index, target, staging, overwrite, staged)
        decided.append(msgspec.structs.replace(output, texts=(DecidedText("_manifest.json", "decided"),)))
    return Decision(JOB, 1, tuple(decided))


def content(target: Path) -> dict[str, str] | None:
    return {path.name: path.read_text() for path in target.iterdir()} if target.exists() else None


NEW = {"part-00000.csv": "new 0", "part-00001.csv": "new 1", "_manifest.json": "decided"}
OLD = {"part-00000.csv": "old", "part-00009.csv": "old too"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_crash_after_any_step_leaves_old_or_new_and_a_repetition_completes(tmp_path, overwrite):
    for crash_count in range(100):
        folder = tmp_path / str(crash_count)
        folder.mkdir()
        decision = prepare(folder, overwrite)
        crash = CrashAfter(crash_count)
        try:
            publish(decision, crash)
        except CrashError:
            for index in range(2):
                assert content(folder / f"out-{index}") in ([OLD, NEW] if overwrite else [None, NEW]), crash.steps
            publish(decision)
            publish(decision)
            completed = False
        else:
            completed = True
        assert sorted(path.name for path in folder.iterdir()) == ["out-0", "out-1"], crash.steps
        assert content(folder / "out-0") == content(folder / "out-1") == NEW, crash.steps
        if completed:
            assert len(crash.steps) == crash_count > 20
            return
    pytest.fail("publication does not end")


def test_without_exchange_of_paths_a_repetition_still_arrives_at_the_new_target(tmp_path, monkeypatch):
    monkeypatch.setattr(LocalFolders, "exchange", lambda *_: False)
    for crash_count in range(100):
        folder = tmp_path / str(crash_count)
        folder.mkdir()
        decision = prepare(folder, overwrite=True, outputs=1)
        crash = CrashAfter(crash_count)
        try:
            publish(decision, crash)
            assert "set aside" in crash.steps
            return
        except CrashError:
            if crash.steps[-1] != "set aside":
                assert content(folder / "out-0") in (OLD, NEW)
            publish(decision)
        assert content(folder / "out-0") == NEW
        assert [path.name for path in folder.iterdir()] == ["out-0"]


def test_an_old_target_that_was_set_aside_comes_back_when_staging_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(LocalFolders, "exchange", lambda *_: False)
    decision = prepare(tmp_path, overwrite=True, outputs=1)

    def stop(step: str) -> None:
        if step == "set aside":
            raise CrashError

    with pytest.raises(CrashError):
        publish(decision, stop)
    remove_staging(staging_path(tmp_path / "out-0", JOB))
    assert content(tmp_path / "out-0") == OLD and [path.name for path in tmp_path.iterdir()] == ["out-0"]


def test_a_target_that_appeared_is_never_touched(tmp_path):
    decision = prepare(tmp_path, overwrite=False, outputs=1)
    (tmp_path / "out-0").mkdir()
    for _ in range(2):
        with pytest.raises(OutputTakenError, match="created by another program"):
            publish(decision)
    assert content(tmp_path / "out-0") == {}


def test_overwrite_of_a_file_and_of_nothing(tmp_path):
    for name in ("file", "nothing"):
        target = tmp_path / name
        if name == "file":
            target.write_text("old")
        staging, staged = stage(target, 0, ["new 0", "new 1"])
        publish(Decision(JOB, 1, (decided_output(0, target, staging, True, staged),)))
        assert content(target) == {"part-00000.csv": "new 0", "part-00001.csv": "new 1"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "nothing"]


def test_a_staged_file_that_is_gone_is_an_error_that_names_it(tmp_path):
    decision = prepare(tmp_path, overwrite=True, outputs=1)
    (Path(decision.outputs[0].staging) / decision.outputs[0].files[1].name).unlink()
    with pytest.raises(JobExecutionError, match=r"0-00001-ffffffff\.csv: a staged file .* is missing"):
        publish(decision)
    assert content(tmp_path / "out-0") == OLD


def test_files_are_numbered_in_subtask_order_with_the_extension_of_the_attempt(tmp_path):
    staged = [StagedFile(0, index, f"0-{index:05d}-x.parquet", 1, 1) for index in (2, 0, 1)]
    output = decided_output(0, tmp_path / "t", tmp_path / "s", False, staged)
    assert [(file.name, file.part) for file in output.files] == [
        ("0-00000-x.parquet", "part-00000.parquet"),
        ("0-00001-x.parquet", "part-00001.parquet"),
        ("0-00002-x.parquet", "part-00002.parquet"),
    ]


def test_golden_decision():
    staged = [StagedFile(0, 0, "0-00000-ab.csv", 3, 7)]
    output = decided_output(0, Path("/out"), Path("/.out.drey-x"), True, staged)
    golden = """{
 "job_id": {
  "value": "cccccccccccccccccccccccccccccccc"
 },
 "epoch": 4,
 "outputs": [
  {
   "sink_index": 0,
   "target": "/out",
   "staging": "/.out.drey-x",
   "overwrite": true,
   "files": [
    {
     "name": "0-00000-ab.csv",
     "part": "part-00000.csv",
     "row_count": 3,
     "size_bytes": 7
    }
   ]
  }
 ],
 "format": 1
}"""
    assert encode_decision(Decision(JOB, 4, (output,))).decode() == golden


@pytest.mark.parametrize("content", [b"{}", b"", b"\xff", b'{"job_id": "c", "epoch": 1, "outputs": [], "format": 2}'])
def test_a_file_that_is_no_decision_is_refused_by_its_name(content):
    with pytest.raises(CorruptBlockError, match=r"^decision-1\.json is (not )?a decision"):
        decode_decision(content, "decision-1.json")


def test_a_decision_of_a_newer_version_is_left_to_it():
    content = msgspec.json.encode(Decision(JOB, 4, (), DECISION.newest + 1))
    with pytest.raises(VersionMismatchError, match=r"decision-1\.json is a decision of form 2, .* a newer version"):
        decode_decision(content, "decision-1.json")


def test_staging_makes_missing_folders_and_takes_them_away_again(tmp_path):
    target = tmp_path / "a" / "b" / "out"
    staging = create_staging(target, JOB)
    assert staging.parent == target.parent and (staging / OWNER_FILE).exists()
    remove_staging(staging)
    remove_staging(staging)
    assert list(tmp_path.iterdir()) == []


def test_folders_that_others_use_meanwhile_stay(tmp_path):
    staging = create_staging(tmp_path / "a" / "b" / "out", JOB)
    (tmp_path / "a" / "mine").write_text("x")
    remove_staging(staging)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["mine"]


def test_staging_of_dead_processes_is_swept_and_that_of_the_living_and_of_strangers_is_not(tmp_path):
    target = tmp_path / "out"
    mine = create_staging(target, JOB)
    owner = msgspec.json.decode((mine / OWNER_FILE).read_bytes(), type=StagingOwner)

    def other(letter: str, **changes: object) -> Path:
        staging = staging_path(target, JobId(letter * 32))
        staging.mkdir()
        changed = msgspec.structs.replace(owner, **changes)
        (staging / OWNER_FILE).write_bytes(msgspec.json.encode(changed))
        return staging

    dead = other("1", pid=2**22 + 1)
    reused = other("2", started_s=owner.started_s - 1000)
    rebooted = other("3", boot="another")
    foreign = other("4", host="elsewhere", pid=2**22 + 1)
    unknown = staging_path(target, JobId("5" * 32))
    unknown.mkdir()
    other_target = tmp_path / f".out2.drey-{JOB}"
    shutil.copytree(dead, other_target)
    assert set(sweep_stale(target)) == {dead, reused, rebooted}
    assert set(tmp_path.iterdir()) == {mine, foreign, unknown, other_target}


def test_staging_of_a_cluster_is_swept_by_that_alone_and_only_when_its_job_is_over(tmp_path):
    target = tmp_path / "out"
    ids = [JobId(letter * 32) for letter in "abc"]
    running, over, foreign = (create_staging(target, job_id, name) for job_id, name in zip(ids, "xxy", strict=True))
    dead = {"pid": 2**22 + 1}
    for staging in (running, over, foreign):
        owner = msgspec.json.decode((staging / OWNER_FILE).read_bytes(), type=StagingOwner)
        (staging / OWNER_FILE).write_bytes(msgspec.json.encode(msgspec.structs.replace(owner, **dead)))
    assert sweep_stale(target) == sweep_stale(target, "z", lambda job_id: True) == []
    assert sweep_stale(target, "x", lambda job_id: job_id == ids[1]) == [over]
    assert set(tmp_path.iterdir()) == {running, foreign}


def test_who_adopts_staging_knows_the_folders_that_were_made_for_it(tmp_path):
    staging = create_staging(tmp_path / "a" / "b" / "out", JOB, "x")
    adopt_staging(staging, "x")
    create_staging(tmp_path / "a" / "b" / "out", JOB, "x")
    assert sweep_stale(tmp_path / "a" / "b" / "out") == []
    remove_staging(staging)
    assert list(tmp_path.iterdir()) == []
