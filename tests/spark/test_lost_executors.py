"""Executors that are killed, tasks that are tried again and tasks that run twice: each row is written once.

On two executors with processes of their own, as ``format("drey")`` and as an export.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

import pyspark

from engine.connectors.records_manifest import read_manifest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(600)]

SCRIPT = """
import sys
from engine.spark import export_data, register
from engine.spark.session import open_session

def faulty(batches):
    import os, signal, time
    from pathlib import Path
    from pyspark import TaskContext
    task = TaskContext.get()
    first = task.attemptNumber() == 0
    if first and task.partitionId() == 1:
        daemon = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(daemon, signal.SIGKILL)
    if first and task.partitionId() == 6:
        time.sleep(12)
    if first and task.partitionId() == 4:
        raise RuntimeError("fails once")
    yield from batches

spark = open_session("lost", "local-cluster[2,1,600]")
register(spark)
rows = spark.range(0, 8000, 1, 8).mapInArrow(faulty, "id BIGINT")
rows.write.format("drey").mode("append").save(sys.argv[1] + "/drey")
export_data(rows, sys.argv[1] + "/export")
known = spark.sparkContext._jsc.sc().statusStore().executorList(False)
print("lost", sum(not known.apply(at).isActive() for at in range(known.size())))
"""
SUBMIT = (
    "--conf spark.speculation=true --conf spark.speculation.quantile=0.5 --conf spark.speculation.multiplier=1.2 "
    "--conf spark.executor.memory=500m --conf spark.ui.enabled=false pyspark-shell"
)


def home_of_links(folder):
    """Return a home of Spark whose executors put their folder ``work`` there, and not into the package."""
    folder.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        (folder / path.name).symlink_to(path)
    return folder


def test_rows_of_lost_and_repeated_tasks_are_there_once(tmp_path):
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("no Java; bin/run-tests provides one")
    own = {
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home_of_links(tmp_path / "spark")),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": SUBMIT,
    }
    folder = tmp_path / "sets"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | own,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "lost 2" in done.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["drey", "export"]
    for target in folder.iterdir():
        files = [target / file.name for file in read_manifest(target).files]
        found = [row for file in files for row in pq.read_table(file).column("id").to_pylist()]
        assert sorted(found) == list(range(8000))
        assert {path for path in target.iterdir() if "manifest" not in path.name} == set(files)
