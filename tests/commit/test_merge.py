"""Files added to a target that stays: whatever the last step before a crash, it is the old one or the new one."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.commit.decision import Decision
from engine.commit.publish import publish
from engine.commit.staging import create_staging, sweep_stale
from engine.commit.target_lock import remove_stale_lock, target_lock
from engine.errors import JobExecutionError, PlanError
from engine.formats.output_check import check_outputs
from engine.graph.deployment import StagedFile
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage import local_folders
from engine.storage.local_folders import LocalFolders
from tests.commit.decided import decided_output

ROOT = Path(__file__).parents[2]


class CrashError(BaseException):
    """The process ends here."""


def files_of(folder: Path):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def decide(target: Path, mode: str, job: str, texts: dict[str, str]) -> Decision:
    """Stage a file for each folder; return the decision to publish them."""
    job_id = JobId(job * 32)
    staging = create_staging(target, job_id)
    staged = [StagedFile(0, 0, "", 0, 0)]
    for index, (folder, text) in enumerate(texts.items()):
        name = f"0-00000-{job * 8}-{index:05d}.csv"
        (staging / name).write_text(text)
        staged.append(StagedFile(0, 0, name, 1, len(text), folder=folder))
    return Decision(job_id, 1, (decided_output(0, target, staging, False, staged, (mode, job_id)),))


def old_target(folder: Path) -> tuple[Path, dict[str, str]]:
    target = folder / "out"
    for name, text in {"k=1/a": "1", "k=1/b": "2", "k=2/a": "3", "_note": "n"}.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    return target, files_of(target)


def expected(old: dict[str, str], mode: str, job: str = "c") -> dict[str, str]:
    added = {f"{folder}/part-00000-{job * 32}.csv": f"new {folder}" for folder in ("k=1", "k=3")}
    kept = {name: text for name, text in old.items() if mode == "append" or not name.startswith("k=1/")}
    return {**kept, **added}


TEXTS = {"k=1": "new k=1", "k=3": "new k=3"}


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("mode", ["append", "overwrite_partitions"])
def test_a_crash_after_any_step_leaves_the_old_or_the_new_target(tmp_path, mode, can_exchange, monkeypatch):
    if not can_exchange:
        monkeypatch.setattr(LocalFolders, "exchange", lambda *_: False)
    steps = 0
    for crash_at in range(100):
        folder = tmp_path / str(crash_at)
        folder.mkdir()
        target, old = old_target(folder)
        new = expected(old, mode)
        decision = decide(target, mode, "c", TEXTS)
        seen: list[str] = []

        def after_step(step, seen=seen, crash_at=crash_at):
            seen.append(step)
            if len(seen) > crash_at:
                raise CrashError(step)

        try:
            publish(decision, after_step)
        except CrashError:
            if can_exchange or seen[-1] != "set aside":
                assert files_of(target) in (old, new), seen[-1]
            publish(decision)
        else:
            steps = len(seen)
        assert files_of(target) == new
        assert [path.name for path in folder.iterdir()] == ["out"]
        if steps:
            break
    assert steps > 10


@pytest.mark.parametrize("mode", ["append", "overwrite_partitions"])
def test_a_target_that_is_not_there_is_made(tmp_path, mode):
    publish(decide(tmp_path / "out", mode, "c", TEXTS))
    assert files_of(tmp_path / "out") == expected({}, mode)
    publish(decide(tmp_path / "none", mode, "c", {}))
    assert files_of(tmp_path / "none") == {}


def test_jobs_that_add_at_once_take_turns_and_lose_nothing(tmp_path):
    target, old = old_target(tmp_path)
    decisions = [decide(target, "append", job, TEXTS) for job in "0123456789"]
    threads = [threading.Thread(target=publish, args=(decision,)) for decision in decisions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = dict(old)
    for job in "0123456789":
        whole |= expected(old, "append", job)
    assert files_of(target) == whole
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_who_crashed_after_its_exchange_takes_nothing_from_who_came_next(tmp_path):
    target, old = old_target(tmp_path)
    first, second = (decide(target, "append", job, TEXTS) for job in "ab")

    def after_step(step):
        if step == "place":
            raise CrashError(step)

    with pytest.raises(CrashError):
        publish(first, after_step)
    publish(second)
    publish(first)
    assert files_of(target) == expected(old, "append", "a") | expected(old, "append", "b")


def test_a_file_system_without_links_is_named(tmp_path, monkeypatch):
    target, old = old_target(tmp_path)

    def refuse(*_args, **_named):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(local_folders.os, "link", refuse)
    with pytest.raises(JobExecutionError, match="no hard links, which modes append and overwrite_partitions need"):
        publish(decide(target, "append", "c", TEXTS))
    assert files_of(target) == old


def test_other_folders_than_those_that_are_there_are_refused(tmp_path):
    target, _ = old_target(tmp_path)

    def check(*keys):
        check_outputs([SinkSpec("csv", str(target), mode="append", partition_by=keys)])

    check("k")
    with pytest.raises(PlanError, match="is partitioned by k, and partition_by is nothing"):
        check()
    with pytest.raises(PlanError, match="is partitioned by k, and partition_by is other, k"):
        check("other", "k")
    (tmp_path / "file").write_text("")
    with pytest.raises(PlanError, match="is no folder; mode='append' adds files to one"):
        check_outputs([SinkSpec("csv", str(tmp_path / "file"), mode="append")])


KILLED = """
import os, signal, sys
from pathlib import Path
from engine.commit.publish import publish
from tests.commit.test_merge import TEXTS, decide
target, mode, last = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
steps = []
def after_step(step):
    steps.append(step)
    if len(steps) > last:
        os.kill(os.getpid(), signal.SIGKILL)
publish(decide(target, mode, "c", TEXTS), after_step)
"""


@pytest.mark.parametrize("mode", ["append", "overwrite_partitions"])
@pytest.mark.parametrize("last", [2, 6, 8, 10])
def test_the_job_after_one_that_was_killed_finds_the_old_or_the_new_target(tmp_path, mode, last):
    target, old = old_target(tmp_path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(target), mode, str(last)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert files_of(target) in (old, expected(old, mode))
    # What it left beside the target is swept by the next one.
    sweep_stale(target)
    assert files_of(target) in (old, expected(old, mode))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_lock_that_somebody_holds_stays(tmp_path):
    with target_lock(tmp_path / "out"):
        remove_stale_lock(tmp_path / "out")
        assert [path.name for path in tmp_path.iterdir()] == [".out.drey-lock"]
    assert list(tmp_path.iterdir()) == []
