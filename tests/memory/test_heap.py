"""What the engine leaves behind in whose process: nothing in a user's, variables and a frozen heap in its own."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.memory import heap
from tests.sampling import first

#: what a host program may notice, before the engine comes, with it, and after a job
SCRIPT = """
import gc, json, os, sys
{before}

def seen():
    collector = [gc.get_threshold(), gc.isenabled(), gc.get_freeze_count() > 0, len(gc.callbacks), gc.get_debug()]
    return [sorted(os.environ.items()), *collector]

notes = [seen()]
import engine
notes.append(seen())
from engine import Environment, col
notes.append(seen())
with Environment(config={{"parallelism.default": 2}}) as env:
    env.read_parquet(sys.argv[1]).filter(col("n") > 0).write_parquet(sys.argv[2])
    env.execute()
notes.append(seen())
print(json.dumps(notes))
"""


def run(script, *arguments):
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("before", first("import pyarrow; gc.disable()", "", "gc.freeze(); gc.set_threshold(50, 2, 2)"))
def test_a_users_process_has_the_variables_and_the_collector_that_it_had(before, tmp_path):
    pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / "in.parquet")
    first, *others = run(SCRIPT.format(before=before), tmp_path / "in.parquet", tmp_path / "out")
    assert others == [first] * 3


def test_a_file_that_only_a_cycle_holds_is_written_when_a_users_process_ends(tmp_path):
    made = (
        "class Log: pass\nlog = Log()\nlog.itself, log.file = log, open(sys.argv[1], 'w')\nlog.file.write('last words')"
    )
    run(f"import json, sys\nfrom engine import Environment\n{made}\nprint(json.dumps(0))", tmp_path / "log")
    assert (tmp_path / "log").read_text() == "last words"


def test_arrow_takes_its_memory_from_jemalloc_where_the_engine_comes_first():
    script = "import json\nfrom engine import Environment\nimport pyarrow as pa\n"
    assert run(script + "print(json.dumps(pa.default_memory_pool().backend_name))") == "jemalloc"
    script = "import json, pyarrow as pa\nfrom engine import Environment\n"
    assert run(script + "print(json.dumps(pa.default_memory_pool().backend_name))") != "jemalloc"


def test_arrows_allocator_has_an_arena_for_each_processor_and_knows_all_that_it_is_told():
    told = heap.worker_variables()
    told["JE_ARROW_MALLOC_CONF"] += ",stats_print:true"
    script = "import pyarrow as pa\npa.allocate_buffer(100, memory_pool=pa.jemalloc_memory_pool())"
    done = subprocess.run([sys.executable, "-c", script], env=told, capture_output=True, text=True, check=True)
    assert "Invalid conf" not in done.stderr
    assert f"opt.narenas: {len(os.sched_getaffinity(0))}\n" in done.stderr


def test_what_the_user_has_chosen_stays(monkeypatch):
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "7")
    for variables in (heap.daemon_variables(), heap.worker_variables()):
        assert (variables["ARROW_DEFAULT_MEMORY_POOL"], variables["MALLOC_ARENA_MAX"]) == ("system", "7")
    script = "import json\nfrom engine import Environment\nimport pyarrow as pa\n"
    assert run(script + "print(json.dumps(pa.default_memory_pool().backend_name))") == "system"


def test_daemons_and_workers_are_told_what_their_libraries_read(monkeypatch):
    for name in ("ARROW_DEFAULT_MEMORY_POOL", "MALLOC_ARENA_MAX", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert heap.daemon_variables()["MALLOC_ARENA_MAX"] == "2"
    assert heap.worker_variables()["OPENBLAS_NUM_THREADS"] == "1"
    assert heap.daemon_variables()["ARROW_DEFAULT_MEMORY_POOL"] == "jemalloc"


def test_workers_do_not_inherit_secret_settings(monkeypatch):
    secret = ("DREY_STORAGE_S3_SECRET_ACCESS_KEY", "DREY_STORAGE_AZURE_ACCOUNT_KEY", "DREY_STORAGE_FSSPEC_OPTIONS")
    others = ("DREY_STORAGE_S3_REGION", "DREY_SECURITY_SECRET_FILE", "AWS_SECRET_ACCESS_KEY", "MY_TOKEN")
    for name in (*secret, *others):
        monkeypatch.setenv(name, "x")
    assert {*others} <= {*heap.worker_variables()}
    assert not {*secret} & {*heap.worker_variables()}


def test_decay_is_at_once_while_anybody_is_short_of_memory(monkeypatch):
    decays = []
    monkeypatch.setattr(heap, "_set_decay", decays.append)
    with heap.decay_at_once():
        with heap.decay_at_once():
            pass
        assert decays == [0]
    assert decays == [0, heap.DECAY_MS]
