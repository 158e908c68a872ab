"""Processes that are killed while they write a table: it has all rows of a job or none, and nothing else is left."""

import random
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from engine import Environment, delta
from tests.tidy.imports import ROOT

deltalake = pytest.importorskip("deltalake")

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

SCRIPT = """
import os
import signal
import sys

import pyarrow as pa

from engine import Environment, delta
from engine.delta_tables import deletion_vectors, delta_target, table_change, table_commit

place, what, point = sys.argv[1:]


def killed(call, is_before):
    def calls(*args, **options):
        result = None if is_before else call(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)
        return result

    return calls


target = delta_target.DeltaTarget
deletion_vectors.INLINE_BYTES_MAX = 10
if point == "prepared":
    target.prepare = killed(target.prepare, False)
elif point == "before the commit":
    table_commit._committed = killed(table_commit._committed, True)
elif point == "behind the commit":
    table_commit._committed = killed(table_commit._committed, False)
elif point == "vectors written":
    table_change.put_version = killed(table_change.put_version, True)
elif point == "cleaned":
    target.clean = killed(target.clean, False)
with Environment({"parallelism.default": "2"}) as env:
    rows = env.from_arrow(pa.table({"id": range(100, 2100), "p": [k % 5 for k in range(2000)]}))
    print("begun", flush=True)
    if what == "append":
        rows.write_delta(place, mode="append")
        env.execute()
    else:
        rows.merge_into(delta(place), on="id")
"""


def table_at(place, what=""):
    vectors = {"delta.enableDeletionVectors": "true"} if what == "vectors" else None
    rows = pa.table({"id": range(200), "p": [k % 5 for k in range(200)]})
    deltalake.write_deltalake(place, rows, partition_by=["p"], configuration=vectors)
    return place


def ids_in(place):
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(place)).execute("SELECT id FROM t")
    return pa.table(query).column("id").to_pylist()


def begun(place, what, point=""):
    command = [sys.executable, "-c", SCRIPT, str(place), what, point]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def check(place, what):
    """Hold the table against what it was, and what it was to become; then against what the next job leaves of it."""
    ids = ids_in(place)
    rows, done = len(ids), 2200 if what == "append" else 2100
    assert rows in (200, done)
    assert len({*ids}) == min(rows, 2100)
    with Environment() as env:
        env.from_arrow(pa.table({"id": [-1], "p": [-1]})).write_delta(place, mode="append")
        env.execute()
        assert env.read_delta(place).count() == rows + 1
    log = (place / "_delta_log").glob("*.json")
    known = "".join(each.read_text() for each in log)
    left = [path for path in place.rglob("*") if path.is_file() and "_delta_log" not in path.parts]
    # The log has the names of files with vectors in a form of its own.
    assert [path for path in left if path.name not in known and path.suffix != ".bin"] == []
    assert len([path for path in left if path.suffix == ".bin"]) == (what == "vectors" and rows == done)


@pytest.mark.parametrize("what", ["append", "merge", "vectors"])
@pytest.mark.parametrize("point", ["prepared", "before the commit", "vectors written", "behind the commit", "cleaned"])
def test_a_kill_at_a_point(tmp_path, what, point):
    if point == "vectors written" and what != "vectors":
        pytest.skip("there are none")
    place = table_at(tmp_path / "t", what)
    process = begun(place, what, point)
    assert process.wait(60) == -9
    assert deltalake.DeltaTable(place).version() == (point in ("behind the commit", "cleaned"))
    check(place, what)
    assert not list(place.rglob("owner.json"))


def test_kills_at_any_moment(tmp_path):
    chance = random.Random(3)
    for trial in range(6):
        what = chance.choice(["append", "merge", "vectors"])
        place = table_at(tmp_path / str(trial), what)
        process = begun(place, what)
        process.stdout.readline()
        time.sleep(chance.uniform(0.05, 0.8))
        process.kill()
        process.wait()
        check(place, what)


def test_merges_after_one_another_keep_their_memory(tmp_path):
    import psutil

    place = table_at(tmp_path / "t")
    sizes = []
    with Environment({"parallelism.default": "2"}) as env:
        for trial in range(12):
            rows = env.from_arrow(pa.table({"id": range(trial * 50, trial * 50 + 100), "p": [trial % 5] * 100}))
            rows.merge_into(delta(place), on="id")
            sizes.append(psutil.Process().memory_info().rss)
    assert deltalake.DeltaTable(place).count() == 650
    assert sizes[-1] < sizes[4] + (32 << 20)
