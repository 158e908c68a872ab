"""Publications that are killed: processes end by SIGKILL at each step, and at random moments."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from engine.commit.decision import Decision, encode_decision
from tests.databases.written import WrittenJob, rows_of

pytestmark = pytest.mark.thorough
pytest.importorskip("adbc_driver_postgresql.dbapi")
ROOT = Path(__file__).resolve().parents[2]
ROWS = 20_000
KILLS = 3
PROGRAM = """
import os, signal, sys
from engine.commit.decision import decode_decision
from engine.commit.publish import publish
decision = decode_decision(sys.stdin.buffer.read(), "stdin")
def after_step(step):
    if step == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)
print("ready", flush=True)
publish(decision, after_step)
"""


def job_of(uri, number, mode):
    on = ("i",) if mode == "upsert" else ()
    rows = pa.table({"i": pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())})
    job = WrittenJob(rows.schema, uri, f"killed_{mode}", mode, on, number=number).prepare()
    return job.attempt(rows.slice(0, ROWS // 3)).attempt(rows.slice(ROWS // 3))


def started(job, output, step):
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, step], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    process.stdin.write(encode_decision(Decision(job.job_id, 1, (output,))))
    process.stdin.close()
    assert process.stdout.readline() == b"ready\n"
    return process


def state_of(uri, mode):
    statement = f"SELECT count(*), count(DISTINCT i), coalesce(min(i), 0) FROM killed_{mode}"
    return rows_of(uri, statement)[0] if rows_of(uri, f"SELECT to_regclass('killed_{mode}')")[0][0] else (0, 0, 0)


@pytest.mark.parametrize("mode", ["append", "overwrite", "upsert"])
def test_killed_at_any_moment_it_is_published_once(postgresql_uri, mode):
    chance = random.Random(mode)
    steps = ["note", "insert", "drop", "commit"] if mode == "append" else ["insert"]
    for number, step in enumerate([*steps, *["never"] * KILLS]):
        before = state_of(postgresql_uri, mode)
        job = job_of(postgresql_uri, number, mode)
        output = job.decide()
        process = started(job, output, step)
        if step == "never":
            time.sleep(chance.uniform(0, 0.25))
            process.kill()
        process.wait(60)
        process.stdout.close()
        count = ROWS if mode == "overwrite" else before[0] + ROWS
        after = (count, count, number * ROWS if mode == "overwrite" else 0)
        assert state_of(postgresql_uri, mode) in (before, after)
        job.publish(output)
        assert state_of(postgresql_uri, mode) == after
