"""A leader is killed at every system call that changes something; the next one finds the old state or the new one.

Whatever was acknowledged runs once to a result, nothing is left of it but its history and output, and what a client
was never told of is gone, too: at once, or with what finds orphans. ``CHAOS=all`` walks over every point, else some.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from engine.dispatcher.job_archive import JobArchive
from engine.dispatcher.orphans import find_orphans, remove_orphan
from tests.dispatcher.crash_leader import CONTENT, JOB, FileHandles, Leader

ROOT = Path(__file__).parents[2]
CALLS = (
    "write,pwrite64,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,fsync,fdatasync,ftruncate"
)
STEP = 1 if os.environ.get("CHAOS") in ("all", "full") else 31


@cache
def why_not():
    """Return why system calls cannot be injected here, "" when they can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], check=False, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"strace may not trace: {done.stderr.strip()[:80]}"


pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.timeout(1200),
    pytest.mark.processes,
]


def lead(folder, action, point=None, log="/dev/null"):
    """Run a leader in a process of its own; return whether it was killed at the n-th of one kind of call."""
    inject = () if point is None else ("-e", f"inject={point[0]}:signal=SIGKILL:when={point[1]}")
    strace = ("strace", "-qq", "-o", str(log), "-e", f"trace={CALLS}", *inject)
    command = [sys.executable, "-B", "-m", "tests.dispatcher.crash_leader", str(folder), action]
    done = subprocess.run([*strace, *command], check=False, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, -signal.SIGKILL, 128 + signal.SIGKILL), done.stderr
    return done.returncode != 0


def points_of(folder, action, state):
    """Return every call of a leader that is not killed, in order: (its name, the how many-th of these)."""
    prepared(folder, state)
    log = folder.with_suffix(".log")
    assert not lead(folder, action, log=log)
    counts, points = Counter(), []
    for line in log.read_text().splitlines():
        name = line.partition("(")[0]
        counts[name] += 1
        points.append((name, counts[name]))
    return points


def prepared(folder, state):
    """Make a folder in which an earlier leader has left a job in some state."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "target").mkdir(parents=True)
    leader = Leader(folder)
    if state == "new":
        return
    journal = leader.submit()
    if state == "accepted":
        journal._place.close()
        return
    leader.prepare(journal, ())
    if state == "cancelled":
        leader.jobs.cancel(JOB)
        leader.acknowledge("cancelling")
        return
    leader.forget = lambda *_: None  # it dies before it cleans
    if state == "decided":
        leader.commit.publish_again = lambda _: None
        leader.run()
    elif state == "ended":
        leader.run()
        leader.end("FINISHED")


def check(folder):
    """Have the next leaders go on, and look at what there is then."""
    said = (folder / "acknowledged").read_text().split() if (folder / "acknowledged").exists() else []
    assert not lead(folder, "recover")
    handles = FileHandles(folder)
    target, history = folder / "target", JobArchive(str(folder / "history"))
    for orphan in find_orphans(str(folder / "storage"), handles, [str(target)]):
        assert orphan.kind != "handle"
        assert remove_orphan(orphan, handles)
    assert handles.names() == ()
    left = [path.name for path in (folder / "storage").rglob("*") if path.is_file()]
    assert left == ["identity"] or (left == [] and not said)
    ended = history.read(JOB)
    status = None if ended is None else ended.outcome.status
    output = {path.name: path.read_text() for path in target.rglob("*") if path.is_file()}
    assert output == ({"part-00000.csv": CONTENT} if status == "FINISHED" else {})
    assert [path.name for path in target.iterdir()] == (["out"] if status == "FINISHED" else [])
    if "accepted" in said:
        assert status is not None
    if "cancelling" in said:
        assert status == "CANCELED"
    later = [word for word in said if word in ("FINISHED", "CANCELED")]
    assert set(later) <= {status}
    return status


@pytest.mark.parametrize(
    ("action", "state"),
    [
        ("finish", "new"),
        ("cancel", "new"),
        ("recover", "accepted"),
        ("recover", "cancelled"),
        ("recover", "decided"),
        ("recover", "ended"),
    ],
)
def test_killed_at_every_call_the_state_is_old_or_new(tmp_path, action, state):
    folder, statuses = tmp_path / "world", []
    points = points_of(folder, action, state)
    for point in points[::STEP]:
        prepared(folder, state)
        assert lead(folder, action, point)
        statuses.append(check(folder))
    print(f"{action} of a {state} job: {len(statuses)} of {len(points)} points: {Counter(statuses)}")
