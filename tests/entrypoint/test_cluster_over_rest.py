"""What a cluster of real processes tells over its REST API: a job while it is known, also after a restart."""

from __future__ import annotations

import json
import re
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from engine.entrypoint.pid_file import process_identity
from engine.rpc.credentials import AUTHORIZATION, Credentials
from tests.entrypoint.conftest import until
from tests.ha.quorum import free_port

pytestmark = pytest.mark.processes

JOB = """
import sys
import pyarrow as pa
from engine import Environment, sum_

env = Environment()
schema = pa.schema([("k", pa.int64()), ("x", pa.int64())])
rows = env.from_rows([(n % 7, n) for n in range(1000)], schema)
rows.map(lambda row: (row.k, 2 * row.x), schema).group_by("k").agg(s=sum_("x")).write_csv(sys.argv[1])
env.execute("sums")
"""


def test_a_job_is_told_in_full_and_outlives_the_job_manager(installation, tmp_path):
    (tmp_path / "job.py").write_text(JOB)

    def text(path, port=installation.port):
        with urllib.request.urlopen(f"http://localhost:{port}{path}", timeout=30) as response:
            return response.read().decode()

    started = installation.run("cluster", "start")
    assert started.returncode == 0, started.stderr + started.stdout
    words = ("job", "submit", "-t", "cluster", str(tmp_path / "job.py"), str(tmp_path / "out"))
    done = installation.run(*words, command=(sys.executable, "-m", "engine.cli.main"))
    assert done.returncode == 0, done.stderr
    job_id = re.search("JobID ([0-9a-f]{32})", done.stdout)[1]
    job = json.loads(text(f"/jobs/{job_id}"))
    assert (job["name"], job["state"]) == ("sums", "FINISHED")
    assert sum(vertex["metrics"]["write-records"] for vertex in job["vertices"]) >= 7
    logs = json.loads(text(f"/jobs/{job_id}/logs"))["logs"]
    assert logs and job_id in text(f"/jobs/{job_id}/logs/{logs[0]['name']}")
    (executor,) = json.loads(text("/taskmanagers"))["taskmanagers"]
    assert "registers" in text("/jobmanager/log") and executor["id"] in text(f"/taskmanagers/{executor['id']}/log")
    assert json.loads(text("/overview"))["managed-bytes-per-slot"] > 0
    page = text(f"/jobs/{job_id}/page")
    (record,) = installation.log.glob("*-audit.log")
    begun, *uploads, submitted = map(json.loads, record.read_text().splitlines())
    assert (begun["what"], begun["details"]["rest.port"].split()[0]) == ("start", str(installation.port))
    assert {entry["what"] for entry in uploads} <= {"upload"}
    told = [submitted[name] for name in ("what", "outcome", "credential", "status")]
    assert told == ["submit", "done", "secret", 202]
    assert submitted["details"] == {"job": job_id, "name": "sums", "is-new": "true"}
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert "audit" not in text("/jobmanager/logs"), "readers do not see who does what"
    metrics, worker = text("/metrics"), f"taskmanager-{executor['id']}"
    assert 'drey_leader{process="jobmanager"} 1.0' in metrics
    assert 'drey_job_duration_seconds_count{state="FINISHED"} 1.0' in metrics
    own = text("/metrics", executor["path"].partition("/")[0].rpartition(":")[2])
    for told in (metrics, own):
        assert f'drey_process_tasks_ended_total{{process="{worker}",state="FINISHED"}}' in told
        assert f'drey_process_event_loop_lag_seconds{{process="{worker}"}}' in told
        assert f'drey_process_disk_free_bytes{{folder="{installation.log}",process="{worker}"}}' in told
        assert f'drey_process_managed_memory_bytes{{process="{worker}"}}' in told
    profile = json.loads(text(f"/jobs/{job_id}/profile"))
    assert profile["causes"] and all(vertex["operators"] for vertex in profile["vertices"])
    assert installation.run("jobmanager", "stop").returncode == 0
    assert installation.run("jobmanager", "start").returncode == 0
    again = json.loads(text(f"/jobs/{job_id}"))
    assert {**again, "now": 0} == {**job, "now": 0} and text(f"/jobs/{job_id}/page") == page
    until(lambda: json.loads(text("/overview"))["slots-total"] == 2, "the TaskManager's return")
    assert installation.run("cluster", "stop").returncode == 0
    port = free_port()
    started = installation.run("historyserver", "start", "-D", f"historyserver.web.port={port}")
    assert started.returncode == 0, started.stderr + started.stdout
    assert json.loads(text(f"/jobs/{job_id}", port))["vertices"] == job["vertices"]
    assert json.loads(text(f"/jobs/{job_id}/profile", port)) == profile
    past = text(f"/jobs/{job_id}/page", port)
    assert job_id in past and "FINISHED" in past and job_id in text("/", port)
    assert "/taskmanagers/" in page and "/taskmanagers/" not in past + text("/", port)
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(f"http://localhost:{port}/jobs", data=b"a job", timeout=30)
    assert installation.run("historyserver", "stop").returncode == 0


SLEEPY_JOB = """
import sys
import pyarrow as pa
from engine import Environment

def sleep(row):
    import time
    time.sleep(600)

env = Environment(target="cluster")
schema = pa.schema([("a", pa.int64())])
env.from_rows([(1,)], schema).map(sleep, schema).write_csv(sys.argv[1])
env.execute("sleepy")
"""


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_stopped_cluster_leaves_the_staging_of_those_jobs_alone_that_go_on_later(installation, tmp_path, is_kept):
    if is_kept:
        installation.configure(**{"high-availability__storageDir": tmp_path / "storage"})
    (tmp_path / "job.py").write_text(SLEEPY_JOB)
    assert installation.run("cluster", "start").returncode == 0
    command = (sys.executable, "-m", "engine.cli.main", "job", "submit", "-d")
    submitted = installation.run(str(tmp_path / "job.py"), str(tmp_path / "out"), command=command)
    assert submitted.returncode == 0, submitted.stderr

    def staging():
        return list(tmp_path.glob(".out.drey-*"))

    until(lambda: staging() != [], "the job's staging")
    assert installation.run("cluster", "stop").returncode == 0
    assert len(staging()) == is_kept
    assert not (tmp_path / "out").exists()


DETACHED_JOB = """
import sys
import pyarrow as pa
from engine import Environment

def later(row):
    import time
    time.sleep(0.5)
    return row

env = Environment(target="cluster")
schema = pa.schema([("a", pa.int64())])
rows = env.from_rows([(n,) for n in range(3)], schema).map(later, schema)
print(rows.count(), [row.a for row in rows.collect()], sum(row.a for row in rows.iter_rows()))
rows.explain(analyze=True)
rows.write_csv(sys.argv[1])
print(env.execute("detached").state)
"""


def test_a_detached_script_waits_for_the_rows_that_it_reads_and_for_no_output(installation, tmp_path):
    (tmp_path / "job.py").write_text(DETACHED_JOB)
    assert installation.run("cluster", "start").returncode == 0
    command = (sys.executable, "-m", "engine.cli.main", "job", "submit", "-d")
    submitted = installation.run(str(tmp_path / "job.py"), str(tmp_path / "out"), command=command)
    assert submitted.returncode == 0, submitted.stderr
    assert "3 [0, 1, 2] 3\n" in submitted.stdout and "CREATED" in submitted.stdout
    until((tmp_path / "out").exists, "the output")


@pytest.mark.parametrize("way", ["python", "flink-run"])
def test_a_script_that_is_asked_to_end_cancels_its_job_on_the_cluster(installation, tmp_path, way):
    (tmp_path / "job.py").write_text(SLEEPY_JOB)
    assert installation.run("cluster", "start").returncode == 0

    def states():
        with urllib.request.urlopen(f"http://localhost:{installation.port}/jobs", timeout=30) as response:
            return [job["status"] for job in json.load(response)["jobs"]]

    command = [sys.executable, *(("-m", "engine.cli.main") if way == "flink-run" else ())]
    script = subprocess.Popen(
        [*command, str(tmp_path / "job.py"), str(tmp_path / "out")],
        env=installation.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: states() == ["RUNNING"], "the job's start")
    script.send_signal(signal.SIGTERM)
    _, errors = script.communicate(timeout=60)
    assert script.returncode == 143, errors
    assert states() == ["CANCELED"]
    assert installation.run("cluster", "stop").returncode == 0
    assert not (tmp_path / "out").exists()


def test_a_request_shuts_the_whole_cluster_down(installation):
    (installation.conf / "workers").write_text("localhost\nlocalhost\n")
    assert installation.run("cluster", "start").returncode == 0
    pids = [*installation.pids("taskmanager"), *installation.pids("jobmanager")]
    assert len(pids) == 3
    credentials = Credentials.load(installation.conf / "cluster.secret")
    request = urllib.request.Request(f"http://localhost:{installation.port}/cluster", method="DELETE")
    request.add_header(AUTHORIZATION, credentials.sign("DELETE", "/cluster"))
    with urllib.request.urlopen(request, timeout=30) as response:
        assert response.status == 200
    until(lambda: not any(process_identity(pid) for pid in pids), "the end of all processes")
    assert "2 TaskManagers are asked to end" in installation.log_text("jobmanager")
    for number in range(2):
        assert "taskmanager ends with exit code 0" in installation.log_text("taskmanager", number)
    assert "jobmanager ends with exit code 0" in installation.log_text("jobmanager")
    assert list(installation.tmp.iterdir()) == []
