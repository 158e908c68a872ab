"""The clock of one machine jumps: it is given up, jobs go on where clocks are right, and it comes back."""

import json
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.entrypoint.conftest import ROOT, until

pytestmark = [pytest.mark.processes, pytest.mark.timeout(200)]

#: a TaskManager whose wall clock is five minutes ahead as long as a file is there
JUMPING = """
import pathlib, sys
from engine import clock
true_ms = clock.SystemClock.wall_ms
clock.SystemClock.wall_ms = lambda self: true_ms(self) + 300_000 * pathlib.Path({mark!r}).exists()
from engine.entrypoint.taskmanager import main
sys.exit(main())
"""
JOB = """
import sys, time
import pyarrow as pa
from engine import Environment, col, count
env = Environment()
rows = env.from_rows([(n,) for n in range(4000)], pa.schema({{"x": pa.int64()}}), rate_limit={rate})
rows.rebalance().with_columns(k=col("x") % 7).group_by("k").agg(n=count()).sort("k").write_csv(sys.argv[1])
env.execute()
"""


@pytest.fixture
def cluster(installation, tmp_path):
    installation.mark = tmp_path / "jumped"
    assert installation.run("jobmanager", "start").returncode == 0
    begun = []
    for words in (["-c", JUMPING.format(mark=str(installation.mark))], ["-m", "engine.entrypoint.taskmanager"]):
        begun.append(
            subprocess.Popen([sys.executable, *words], env=installation.environment, cwd=ROOT, stdin=subprocess.DEVNULL)
        )
        until(lambda: installation.slots() == 2 * len(begun), "a TaskManager")
    yield installation
    for process in begun:
        process.kill()
        process.wait()


def submitted(cluster, folder, name, rate):
    script = folder / f"{name}.py"
    script.write_text(JOB.format(rate=rate))
    words = ["-m", "engine.cli.main", "job", "submit", "-t", "cluster", "-p", "4", str(script), str(folder / name)]
    return subprocess.Popen(
        [sys.executable, *words], env=cluster.environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def rows_of(folder):
    return sorted(line for part in folder.glob("part-*") for line in part.read_text().splitlines())


def test_jobs_end_well_on_the_others_and_the_machine_comes_back(cluster, tmp_path):
    running = submitted(cluster, tmp_path, "first", 400)
    time.sleep(4)
    cluster.mark.touch()
    jumped_s = time.monotonic()
    later = submitted(cluster, tmp_path, "second", 100_000)
    for job, name in ((later, "second"), (running, "first")):
        said, _ = job.communicate(timeout=120)
        assert job.returncode == 0, said.decode()
        assert rows_of(tmp_path / name) == sorted(f"{k},{4000 // 7 + (k < 4000 % 7)}" for k in range(7))
        if name == "second":
            assert time.monotonic() - jumped_s < 40, "heartbeats had not to be waited for"
    assert cluster.slots() == 2
    counts = json.load(urllib.request.urlopen(f"http://localhost:{cluster.port}/jobmanager/refusals"))["counts"]
    assert counts["clock"] > 0
    cluster.mark.unlink()
    until(lambda: cluster.slots() == 4, "its return")
