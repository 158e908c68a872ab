"""Every process of a cluster is replaced by one of another release, and back, under jobs that go on."""

import os
import re
import shlex
import shutil
import threading
import time

import pytest

from tests import last_release
from tests.chaos.cluster import ROOT
from tests.chaos.other_build import HERE, next_build
from tests.chaos.rolling_cluster import RollingCluster
from tests.ha.quorum import needs_quorum

FIVE_STAGES = ROOT / "tests" / "chaos" / "five_stages.py"
#: seconds of each stage of the long jobs, of which one runs whenever a process is replaced
STAGE_S = 2.0
ROUNDS = int(os.environ.get("ROUNDS", "1"))
pytestmark = [pytest.mark.processes, needs_quorum]


@pytest.fixture
def last():
    """Return the last release."""
    build = last_release.kept()
    return build or pytest.skip("the last release is not built: python -m tests.last_release builds it")


@pytest.fixture(params=["next", "last"])
def releases(request, tmp_path):
    """Return two builds, the older one first: this one and a next one made of it, or the last release and this one.

    Of one version there are only sources between two releases: what they will be is made of them.
    """
    if request.param == "next":
        return HERE, next_build(tmp_path / "next")
    older = request.getfixturevalue("last")
    return older, HERE if older.version != HERE.version else next_build(tmp_path / "next")


def expected_rows(rows):
    """Return what a job of five stages writes."""
    groups = {}
    quarter, few = rows // 4, rows // 16
    for key in range(quarter):
        count, total = groups.get(key % few, (0, 0))
        groups[key % few] = count + 4, total + sum(range(key, rows, quarter))
    return [f"{group},{count},{total}" for group, (count, total) in sorted(groups.items())]


def lines_of(folder):
    return [line for part in sorted(folder.glob("part-*.csv")) for line in part.read_text().split()]


class Stream:
    """Jobs of five stages, one after the other, for as long as processes are replaced."""

    def __init__(self, cluster, folder, name, rows, stage_s, parallelism, pause_s):
        self.cluster, self.folder, self.name = cluster, folder, name
        self._arguments, self._parallelism, self._pause_s = (rows, stage_s), parallelism, pause_s
        self.failures, self.ids = [], []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._submit)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()

    def _submit(self):
        while not self._is_over.wait(self._pause_s):
            target = self.folder / self.name
            job = self.cluster.job(self._parallelism, FIVE_STAGES, target, *self._arguments)
            if job.wait() != 0 or lines_of(target) != expected_rows(self._arguments[0]):
                self.failures.append((job.stdout, job.stderr))
                return
            self.ids.append(job.job_id())
            shutil.rmtree(target)

    def check(self):
        """All jobs are right, and every subtask of each has run once."""
        assert self.failures == [], self.failures[0][1] + self.cluster.log_tails(40)
        for job_id in self.ids:
            attempts = self.cluster.wait_until(lambda each=job_id: self.cluster.attempts_of(each), "attempts")
            assert {number for number, _ in attempts} == {0}, attempts


def roll(cluster, build, upwards):
    """Replace everything by a build: readers before writers, and back in the other order."""
    if upwards:
        cluster.roll_task_managers(build)
        cluster.roll_job_managers(build)
        cluster.submitting = build
    else:
        cluster.submitting = build
        cluster.roll_job_managers(build)
        cluster.roll_task_managers(build)
    assert {each["version"] for each in cluster.listed().values()} == {build.version}


def test_the_page_has_the_steps_that_are_taken_here():
    page = (ROOT / "docs/pages/operating/upgrade.md").read_text().partition("## With the cluster stopped")[0]
    lines = [shlex.split(line, comments=True) for line in page.splitlines() if line.strip().startswith("bin/")]
    assert [" ".join(words).replace("5f0c2a", "ID") for words in lines] == [
        "bin/taskmanager.sh start",
        "bin/flink-run taskmanager list",
        "bin/flink-run taskmanager drain ID --wait",
        "bin/jobmanager.sh stop",
        "bin/jobmanager.sh start",
    ]


def test_sources_between_releases_are_refused_with_one_error(tmp_path, small_quorum):
    other = next_build(tmp_path / "other", is_released=False)
    with RollingCluster(tmp_path / "cluster", small_quorum, HERE) as cluster:
        cluster.begin(other, "taskmanager", "start")
        told = cluster.wait_until(cluster.refused, "a refusal")
        assert {(each["reason"], each["request"]) for each in told} == {("version", "POST /rpc")}
        cluster.submitting = other
        job = cluster.job(1, FIVE_STAGES, tmp_path / "out", 160, 0.01)
        assert job.wait() != 0
        protocols = re.findall(r"Drey (\S+) \(protocol (1-1:\w+)\)", told[0]["message"])
        assert len(set(protocols)) == 2 and {version for version, _ in protocols} == {HERE.version}
        assert job.stderr.startswith("VersionMismatchError: the client") and protocols[0][1] in job.stderr
        assert not (tmp_path / "out").exists()


@pytest.mark.timeout(900 * ROUNDS)
def test_every_process_is_replaced_in_both_directions_and_no_subtask_runs_twice(tmp_path, small_quorum, releases):
    older, newer = releases
    with RollingCluster(tmp_path / "cluster", small_quorum, older) as cluster:
        for number in range(ROUNDS):
            began_s = time.monotonic()
            long = Stream(cluster, tmp_path, "long", 1600, STAGE_S, 2, 0)
            queue = Stream(cluster, tmp_path, "queue", 160, 0.01, 1, 3)
            with long, queue:
                roll(cluster, newer, upwards=True)
                roll(cluster, older, upwards=False)
            long.check()
            queue.check()
            counts = f"{len(long.ids)} long jobs, {len(queue.ids)} short ones"
            print(f"round {number}: {counts}, {time.monotonic() - began_s:.0f} s", flush=True)
        assert cluster.state_left() == []
        assert "VersionMismatchError" not in cluster.log_tails(10_000)
