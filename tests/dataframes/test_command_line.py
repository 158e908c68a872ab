"""flink-run -t spark: a job to its end, and one that is interrupted."""

import signal
import subprocess
import sys
import time

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

_JOB = """
import time
import pyarrow as pa
from engine import Environment

SCHEMA = pa.schema([("id", pa.int64())])

def slow(row):
    time.sleep({pause})
    return (row.id,)

with Environment() as env:
    env.from_rows([(i,) for i in range(2000)], SCHEMA).map(slow, SCHEMA).write_parquet({target!r})
    env.execute()
"""


def _submit(folder, pause):
    script = folder / "job.py"
    script.write_text(_JOB.format(pause=pause, target=str(folder / "out")))
    command = [sys.executable, "-P", "-m", "engine.cli.main", "job", "submit", "-t", "spark", "--master", "local[2]"]
    return subprocess.Popen(
        [*command, str(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def test_a_script_runs_on_spark(tmp_path):
    with _submit(tmp_path, 0) as job:
        said, _ = job.communicate(timeout=120)
    assert job.returncode == 0, said
    assert "Job State: FINISHED" in said
    assert all(path.name.startswith("part-") for path in (tmp_path / "out").iterdir())


def test_an_interrupted_job_leaves_nothing(tmp_path):
    with _submit(tmp_path, 0.05) as job:
        for line in job.stdout:
            if "submitted" in line:
                break
        time.sleep(1)
        job.send_signal(signal.SIGINT)
        said, _ = job.communicate(timeout=120)
    assert job.returncode == 130, said
    assert "CANCELED" in said
    assert "Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["job.py"]
