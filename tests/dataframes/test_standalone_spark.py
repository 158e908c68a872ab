"""``-t spark`` on a standalone cluster of Spark: real processes, of which the worker sees none of the job's files."""

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from tests.spark.daemons import ROOT, SPARK, daemon, free_port, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(240)]

JOB = """
import pyarrow as pa
import helper
from engine import Environment

SCHEMA = pa.schema([("id", pa.int64()), ("found", pa.string())])

def beside(row):
    from later import NAME
    return row.id, f"{helper.VALUE} {NAME}"

with Environment() as env:
    ids = env.from_rows([(number,) for number in range(4)], pa.schema([("id", pa.int64())]))
    print("found", ids.map(beside, SCHEMA).to_arrow()["found"].unique().to_pylist())
"""


@pytest.fixture
def job(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "job.py").write_text(JOB)
    (folder / "helper.py").write_text("import later\nVALUE = 'imported'\n")
    (folder / "later.py").write_text("NAME = 'in a function'\n")
    return folder / "job.py"


@pytest.fixture
def master(tmp_path, job):
    """The URL of a cluster whose worker sees an empty folder in place of the job's."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("no Java; bin/run-tests provides one")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    spark_class, port = str(SPARK / "bin" / "spark-class"), free_port()
    url = f"spark://127.0.0.1:{port}"
    first, second = tmp_path / "master.log", tmp_path / "worker.log"
    start_master = [spark_class, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
    start_worker = f"{spark_class} org.apache.spark.deploy.worker.Worker --webui-port 0 -c 2 -m 1g -d {tmp_path}/work"
    hidden = f"mount -t tmpfs tmpfs {job.parent} && exec {start_worker} {url}"
    with daemon(first, *start_master, "--webui-port", "0"):
        wait_for(first, "I have been elected leader")
        with daemon(second, "unshare", "-m", "bash", "-c", hidden):
            wait_for(second, "Successfully registered")
            yield url


def test_modules_of_the_job_reach_executors_that_do_not_see_its_folder(master, job):
    done = subprocess.run(
        [sys.executable, "-m", "engine.cli.main", "job", "submit", "-t", "spark", "-m", master, str(job)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr
    assert "found ['imported in a function']" in done.stdout
