"""Exports to one path at once, and killed ones: a reader sees old rows or new ones, the loser a clear error."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from engine import Environment
from engine.connectors.records_manifest import MANIFEST_NAME, read_manifest, write_manifest
from engine.connectors.records_parts import merged_manifest
from engine.connectors.records_writer import written_parts
from engine.errors import PlanError
from engine.spark.export_publishing import Made, append, publish, staging

SCHEMA = pa.schema({"n": pa.int64()})
pytestmark = pytest.mark.timeout(300)


def made_in(folder, numbers):
    made = folder / "data"
    made.mkdir()
    path = made / "part-00000.parquet"
    pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), path)
    parts = written_parts([path], SCHEMA)
    manifest = merged_manifest(SCHEMA.serialize().to_pybytes(), parts)
    write_manifest(made, manifest)
    return Made(made, SCHEMA, parts, manifest)


def export(target, numbers, *, overwrite=False):
    with staging(target) as folder:
        made = made_in(folder, numbers)
        publish(made, target, overwrite=overwrite)


def add(target, numbers, before):
    with staging(target) as folder:
        append(made_in(folder, numbers), target, before, lambda: None)


def numbers_of(folder):
    with Environment() as env:
        return sorted(row.n for row in env.read_records(folder).collect())


def test_who_comes_second_to_a_new_path_is_told_so(tmp_path):
    target = tmp_path / "set"
    with staging(target) as folder:
        made = made_in(folder, [1])
        export(target, [2])
        with pytest.raises(PlanError, match="was created by another writer while this export ran"):
            publish(made, target, overwrite=False)
    assert numbers_of(target) == [2]
    with staging(target) as folder:
        made = made_in(folder, [1])
        publish(made, target, overwrite=True)
    assert numbers_of(target) == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_reader_of_a_data_set_that_is_replaced_goes_on(tmp_path):
    target = tmp_path / "set"
    export(target, [1])
    before = [target / file.name for file in read_manifest(target).files]
    export(target, [2], overwrite=True)
    assert pq.read_table(before).column("n").to_pylist() == [1]
    export(target, [3], overwrite=True)
    assert not any(path.exists() for path in before)
    assert len(list(target.glob("*.parquet"))) == 2


def test_a_folder_that_is_no_data_set_is_replaced(tmp_path):
    target = tmp_path / "set"
    target.mkdir()
    (target / "letter.txt").write_text("dear")
    export(target, [1], overwrite=True)
    assert {path.name for path in target.iterdir()} == {MANIFEST_NAME, "part-00000.parquet"}


def test_of_two_exports_beyond_one_watermark_the_second_adds_nothing(tmp_path):
    target = tmp_path / "set"
    export(target, [1, 2])
    before = read_manifest(target)
    add(target, [3, 4], before)
    with pytest.raises(PlanError, match="was changed by another export meanwhile; nothing was written"):
        add(target, [3, 4], before)
    assert numbers_of(target) == [1, 2, 3, 4]
    assert not [path for path in target.iterdir() if path.name.startswith(".drey-write")]
    add(target, [5], read_manifest(target))
    assert numbers_of(target) == [1, 2, 3, 4, 5]


def _overwrite_often(target, number):
    while True:
        export(target, [number] * 50, overwrite=True)


def test_whoever_is_killed_when_readers_see_one_export_whole_and_leftovers_go(tmp_path):
    target = tmp_path / "set[1]"
    export(target, [0] * 50)
    chosen, seen = random.Random(7), set()
    context = multiprocessing.get_context("fork")
    for round_number in range(1, 9):
        writers = [context.Process(target=_overwrite_often, args=(target, 10 * round_number + n)) for n in (0, 1)]
        for writer in writers:
            writer.start()
        ends = time.monotonic() + chosen.uniform(0.05, 0.25)
        while time.monotonic() < ends:
            seen.add(_read_at_once(target))
        for writer in writers:
            os.kill(writer.pid, signal.SIGKILL)
            writer.join()
        found = numbers_of(target)
        assert len(found) == 50 and len(set(found)) == 1
    export(target, [-1] * 50, overwrite=True)
    export(target, [-2] * 50, overwrite=True)
    assert len(list(target.glob("*.parquet"))) == 2
    # whoever died before it could say who it is
    unnamed = {path.name for path in tmp_path.iterdir() if not (path / "owner.json").exists()}
    assert {path.name for path in tmp_path.iterdir()} - unnamed <= {target.name}
    for name in unnamed - {target.name}:
        os.utime(tmp_path / name, (0, 0))  # their time to say so is over
    export(target, [-3] * 50, overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {target.name}
    assert len(seen) > 4


def _read_at_once(target):
    """Return the number that all rows have; who has waited for two switches begins again."""
    while True:
        try:
            paths = [target / file.name for file in read_manifest(target).files]
            (rows,) = (pq.read_table(path).column("n").to_pylist() for path in paths)
        except Exception as error:  # a part that two later exports have replaced
            if "missing" not in str(error) and not isinstance(error, FileNotFoundError):
                raise
            continue
        assert len(rows) == 50
        (number,) = set(rows)
        return number


_SCRIPT = """
import itertools, sys, threading
from engine.spark.data_source import register
from engine.spark.export import export_data
from engine.spark.session import open_session
spark = open_session("killed", "local[2]")
folder, start = sys.argv[1], int(sys.argv[2])

def write(kind, session):
    if kind != "export":
        register(session)
    for first in itertools.count(start, 20_000):
        data = session.range(first, first + 20_000, 1, 6).withColumnRenamed("id", "n")
        if kind == "export":
            export_data(data, f"{folder}/{kind}", overwrite=True)
        else:
            data.write.format("drey").mode(kind).save(f"{folder}/{kind}")
        print("written", flush=True)

for kind in ("export", "overwrite", "append"):
    threading.Thread(target=write, args=(kind, spark.newSession())).start()
print("ready", flush=True)
"""


@pytest.mark.spark
@pytest.mark.thorough
def test_real_processes_are_killed_at_random_moments(tmp_path):
    """Each process writes to three data sets at once, one write after the other, until it is killed."""
    rows, chosen = {"export": 1000, "overwrite": 1000, "append": 1000}, random.Random(5)
    for kind in rows:
        export(tmp_path / kind, range(1000))
    for number, writes in enumerate((0, 1, 4), 1):
        _kill_while_it_writes(tmp_path, number * 10**6, writes, chosen.uniform(0, 1))
        for kind, before in rows.items():
            found = numbers_of(tmp_path / kind)
            is_whole = (len(found) - before) % 20_000 == 0 if kind == "append" else len(found) in (before, 20_000)
            assert is_whole and len(found) == len(set(found)) >= before, (kind, len(found))
            rows[kind] = len(found)
    assert max(rows.values()) > 1000
    for kind in rows:
        export(tmp_path / kind, [1], overwrite=True)
        export(tmp_path / kind, [2], overwrite=True)
        assert len(list((tmp_path / kind).glob("*.parquet"))) == 2
    left = [path for path in (*tmp_path.glob("*/*"), *tmp_path.iterdir()) if ".drey-" in path.name]
    # Who is killed between making its folder and naming itself leaves an empty one, for some minutes.
    assert not [path for path in left if any(path.iterdir())]


def _kill_while_it_writes(folder, start, writes, seconds):
    """Kill a process some time after it has written so often."""
    words = [sys.executable, "-c", _SCRIPT, str(folder), str(start)]
    submit = "--conf spark.speculation=true --conf spark.ui.enabled=false pyspark-shell"
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": submit}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment)
    assert [process.stdout.readline() for _ in range(1 + writes)] == ["ready\n", *["written\n"] * writes]
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
