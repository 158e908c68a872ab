"""Each process of a real cluster exports its metrics, the leader its jobs; a receiver that hangs delays nothing."""

import subprocess
import sys

import pytest

from tests.entrypoint.conftest import ROOT, until
from tests.rest.test_opentelemetry_export import Receiver, metrics_of

pytestmark = pytest.mark.processes

JOB = """
from drey import Environment
print(Environment().from_dict({"x": [1]}).collect())
"""


def spans_of(receiver):
    """Return the spans of the first job."""
    traces = [request for path, _, request in tuple(receiver.heard) if path == "/v1/traces"]
    return list(traces[0].resource_spans[0].scope_spans[0].spans) if traces else []


def run_job(installation, tmp_path):
    path = tmp_path / "job.py"
    path.write_text(JOB)
    command = [sys.executable, "-m", "engine.cli.main", "job", "submit", "-t", "cluster", str(path)]
    done = subprocess.run(
        command, env=installation.environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert "Row(x=1)" in done.stdout, done.stdout + done.stderr


def test_each_process_exports_itself_and_the_leader_the_cluster_too(installation, tmp_path):
    receiver = Receiver()
    installation.configure(**{"opentelemetry.endpoint": receiver.url, "opentelemetry.interval": "200 ms"})

    def told():
        """Return the names of the metrics of each service."""
        heard = {}
        for path, _, request in tuple(receiver.heard):
            if path != "/v1/metrics":
                continue
            resource, metrics = metrics_of(request)
            heard.setdefault(resource["service.name"], set()).update(metrics)
        return heard

    try:
        started = installation.run("cluster", "start")
        assert started.returncode == 0, started.stdout + started.stderr
        run_job(installation, tmp_path)
        until(lambda: set(told()) == {"drey-jobmanager", "drey-taskmanager"}, "an export of both")
        until(lambda: spans_of(receiver), "the trace of the job")
        job, *others = spans_of(receiver)
        assert {span.trace_id for span in others} == {job.trace_id} and job.name == "job (collect)"
        assert {span.parent_span_id for span in others} > {job.span_id}, "vertices, and attempts below them"
        of_worker, of_leader = told()["drey-taskmanager"], told()["drey-jobmanager"]
        assert {"drey.taskmanagers", "drey.job.duration", "drey.leader"} <= of_leader - of_worker
        assert "drey.process.managed_memory" in of_worker - of_leader
        receiver.go_on.clear()
        count = len(receiver.heard)
        until(lambda: len(receiver.heard) == count + 2, "requests of both that hang")
        run_job(installation, tmp_path)
        metrics = [path for path, *_ in receiver.heard[count:] if path == "/v1/metrics"]
        assert len(metrics) == 2, "nothing waits for an answer but the export"
        stopped = installation.run("cluster", "stop")
        assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    finally:
        receiver.close()
