"""The image of the Dockerfile, built in Debian's root file system, and clusters of Compose and Kubernetes in it."""

import csv
import re
import shutil
import signal
import subprocess
import sys

import pytest
import yaml

from tests.chaos.tap_network import reason_against as reason_against_networks
from tests.deployment.chart import MANIFESTS
from tests.deployment.compose import Composed
from tests.deployment.image import allowed, instructions_of, stages_of
from tests.deployment.pods import Pods
from tests.ha.quorum import needs_quorum
from tests.tidy.imports import ROOT

pytestmark = [pytest.mark.processes, pytest.mark.timeout(900)]

JOB = """
import sys
import pyarrow as pa
from drey import Environment, sum_

schema = pa.schema([("k", pa.int64()), ("x", pa.int64())])
env = Environment(target="cluster")
rows = env.from_rows([(n % 7, n) for n in range(10_000)], schema)
doubled = rows.map(lambda row: (row.k, 2 * row.x), schema)
doubled.group_by("k").agg(s=sum_("x")).sort("k").write_csv(f"/data/{sys.argv[1]}")
env.execute("sums")
"""
EXPECTED = [(k, sum(2 * n for n in range(10_000) if n % 7 == k)) for k in range(7)]
SUBMIT = ("flink-run", "job", "submit", "-t", "cluster", "/jobs/job.py")
#: pods of the manifest, and their StatefulSets
CLUSTER = {f"{name}-{number}": name for name in ("drey-jobmanager", "drey-taskmanager") for number in range(2)}


def said_by(image, *words, **arguments):
    process = image.start(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **arguments)
    said, _ = process.communicate(timeout=60)
    return process.returncode, said.strip()


def test_its_processes_are_nobody_and_can_write_nowhere(image):
    assert said_by(image, "id", "-u")[1] == "10001"
    for folder in ("/", "/etc/drey", "/opt/drey", "/var/lib", "/usr/local/bin"):
        code, said = said_by(image, "sh", "-c", f"touch {folder}/x")
        assert code != 0 and ("Read-only" in said or "Permission denied" in said), said
    code, said = said_by(image, "sh", "-c", "grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status")
    assert re.findall(r"\t(\w+)", said) == ["0" * 16, "0" * 16, "1"], said


def test_it_has_what_runs_and_nothing_that_builds(image):
    for command in ("gcc", "cc", "pip", "make", "curl"):
        assert said_by(image, "sh", "-c", f"command -v {command}")[0] != 0, command
    assert said_by(image, "flink-run", "--version", volumes={"/var/lib/drey": None})[1].startswith("Drey ")
    found = [path for path in image.root.rglob("*") if path.name.endswith((".secret", ".token", ".whl"))]
    assert found == []
    assert image.size_bytes() < 550 << 20


def test_without_a_secret_it_says_what_to_do_and_does_not_start(image):
    code, said = said_by(image, volumes={"/var/lib/drey": None})
    assert code in (1, 3) and "without the cluster's secret: make it once" in said, said
    assert said_by(image, *image.healthcheck, volumes={"/var/lib/drey": None}, entrypoint=[])[0] == 1


def rows_of(folder):
    return [tuple(map(int, row)) for part in sorted(folder.glob("part-*.csv")) for row in csv.reader(part.open())]


@needs_quorum
def test_the_cluster_of_the_compose_file_runs_a_job_and_outlives_its_leader(image, tmp_path):
    if reason := reason_against_networks():
        pytest.skip(reason)
    tmp_path.chmod(0o755)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "job.py").write_text(JOB)
    drey = ["jobmanager-1", "jobmanager-2", "taskmanager-1", "taskmanager-2"]
    with Composed(ROOT / "compose.yaml", image, tmp_path) as composed:
        assert set(composed.services) == {"zookeeper", "client", *drey}
        composed.start_zookeeper()
        composed.up(drey)
        composed.wait_until_healthy(drey)
        code, said = composed.run("client", [*SUBMIT, "first"])
        assert code == 0, said + composed.log("jobmanager-1")[-3000:] + composed.log("taskmanager-1")[-2000:]
        assert rows_of(tmp_path / "volumes" / "data" / "first") == EXPECTED
        leader = next(name for name in drey if "leads at" in composed.log(name))
        composed.end(leader, signal.SIGKILL)
        (other,) = {"jobmanager-1", "jobmanager-2"} - {leader}
        composed.wait_until(lambda: "leads at" in composed.log(other), "leadership", other)
        code, said = composed.run("client", [*SUBMIT, "second"])
        assert code == 0, said + composed.log(other)[-3000:]
        assert rows_of(tmp_path / "volumes" / "data" / "second") == EXPECTED


def test_no_secret_that_lies_in_the_checkout_is_in_what_is_built(tmp_path):
    shutil.copy(ROOT / ".dockerignore", tmp_path)
    for name in ("conf/cluster.secret", "conf/kubernetes/read.token", "secrets/x", "engine/a.so", ".venv/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("conf/config.yaml", "engine/a.py", "engine/a.pyx", "setup.py"):
        (tmp_path / name).touch()
    there = {str(path.relative_to(tmp_path)) for path in allowed(tmp_path)}
    assert there == {"conf/config.yaml", "engine/a.py", "engine/a.pyx", "setup.py"}


def test_what_follows_the_dockerfile_knows_its_lines():
    text = "# a\nARG X=1\nFROM a:${X} AS b\nRUN one \\\n    # said between\n    && two\nFROM c\nCOPY --from=b x y\n"
    assert [" ".join(rest.split()) for _, rest in instructions_of(text)][2] == "one && two"
    stages, arguments = stages_of(text)
    assert arguments == {"X": "1"} and stages["b"][0] == "a:1" and stages[""][1] == [("COPY", "--from=b x y")]


def submit(pods, out):
    """Run the job by this checkout's command on a machine beside the pods; check its rows."""
    (pods.folder / "job.py").write_text(JOB)
    secret = pods.folder / "own.secret"
    secret.write_text((pods.folder / "volumes" / "drey-jobmanager-0-secrets" / "cluster.secret").read_text())
    secret.chmod(0o600)
    masters = ",".join(f"{pods.network.address(pod)}:8081" for pod in CLUSTER if "jobmanager" in pod)
    words = [*pods.network.command("zookeeper"), sys.executable, "-P", "-m", "engine.cli.main", "job", "submit"]
    words += ["-t", "cluster", "-m", masters, "-D", f"security.secret-file={secret}", pods.folder / "job.py", out]
    done = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr + pods.log("drey-taskmanager-0")[-3000:]
    assert rows_of(pods.folder / "volumes" / "data" / out) == EXPECTED


@pytest.fixture
def started(image, tmp_path, request):
    """Make pods that end with the test."""
    if reason := reason_against_networks():
        pytest.skip(reason)
    tmp_path.chmod(0o755)

    def make(name, sets):
        documents = [each for each in yaml.safe_load_all((MANIFESTS / name).read_text()) if each]
        pods = Pods(documents, image, tmp_path, sets)
        request.addfinalizer(pods.close)
        return pods

    return make


@needs_quorum
def test_the_pods_of_the_manifests_are_a_cluster_that_outlives_its_leader(started):
    pods = started("drey.yaml", CLUSTER)
    pods.start_zookeeper()
    for pod in CLUSTER:
        pods.keep(pod, ())
    for pod in CLUSTER:
        pods.wait_until(lambda pod=pod: pods.is_ready(pod), "readiness", pod)
        assert pods.probe(pod, "livenessProbe") == pods.probe(pod, "startupProbe") == 200
    submit(pods, "first")
    leader = next(pod for pod in CLUSTER if "leads at" in pods.log(pod))
    (other,) = {"drey-jobmanager-0", "drey-jobmanager-1"} - {leader}
    pods.end(leader, signal.SIGKILL)
    pods.wait_until(lambda: "leads at" in pods.log(other), "leadership", other)
    pods.keep(leader, ())
    pods.wait_until(lambda: pods.is_ready(leader), "the return", leader)
    submit(pods, "second")


def test_the_pod_of_one_job_ends_with_its_job(started):
    pods = started("job.yaml", {"drey-job": "drey-job"})
    pods.keep("drey-job.taskmanager-0", ())
    pods.keep("drey-job.job", ())
    assert pods.processes["drey-job.job"].wait(120) == 0, pods.log("drey-job.job")[-3000:]
    assert sorted(rows_of(pods.folder / "volumes" / "data" / "numbers")) == [(7,), (8,), (9,)]
