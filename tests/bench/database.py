"""What reading and writing tables of PostgreSQL costs beside its driver alone, in turns, each in a process of its own.

    python -m tests.bench database [--rows N] [--runs 3]

Read: all rows in two ranges of a key, dropped as they come; the driver alone with two threads, which do nothing else
with them. Written: the same rows into a new table; the driver alone appends them with two connections. Figures are
those of the client's process, medians of the turns; the server's work is the same, and counts in the seconds.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from tests.postgresql_server import postgresql

ROWS = 20_000_000
_PROGRAMS = {
    "drey reads": """
from engine import Environment
with Environment({"parallelism.default": "2"}) as env:
    begin()
    env.read_database("numbers", uri, partition_on="id", partitions=2).explain(analyze=True)
    end()
""",
    "driver reads": """
import threading
import adbc_driver_postgresql.dbapi as dbapi
def read(condition):
    with dbapi.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM numbers WHERE {condition}")
        for batch in cursor.fetch_record_batch():
            batch.num_rows
begin()
threads = [threading.Thread(target=read, args=(f"id {word} {rows // 2}",)) for word in ("<=", ">")]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
end()
""",
    "drey writes": """
from engine import Environment
with Environment({"parallelism.default": "2"}) as env:
    table = numbers()
    begin()
    env.from_arrow(table).write_database("written", uri)
    env.execute()
    end()
""",
    "driver writes": """
import threading
import adbc_driver_postgresql.dbapi as dbapi
table = numbers()
def write(part):
    with dbapi.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("written", part, mode="append")
begin()
with dbapi.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
    cursor.execute("CREATE TABLE written (id bigint, g int, x double precision, s text)")
half = table.num_rows // 2
threads = [threading.Thread(target=write, args=(part,)) for part in (table.slice(0, half), table.slice(half))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
end()
""",
}
_FRAME = """
import json, resource, sys, time
import pyarrow as pa, pyarrow.compute as pc
uri, rows = sys.argv[1], int(sys.argv[2])
def numbers():
    ids = pa.array(range(rows), pa.int64())
    texts = pc.binary_join_element_wise("text ", ids.cast(pa.string()), "")
    return pa.table({"id": ids, "g": ids.cast(pa.int32()), "x": ids.cast(pa.float64()), "s": texts})
def begin():
    global started, used
    started, used = time.perf_counter(), time.process_time()
def end():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps([time.process_time() - used, time.perf_counter() - started, peak]))
"""
#: rows that are written at most: they are made in memory
_WRITTEN_MAX = 2_000_000


def report(rows: int, turns: int) -> str:
    """Return a table of all programs, and the ratios."""
    found: dict[str, list[list[float]]] = {name: [] for name in _PROGRAMS}
    with postgresql() as uri:
        _do(
            uri,
            "CREATE TABLE numbers AS SELECT i AS id, (i % 1000)::int AS g, i / 4.0::float8 AS x, 'text ' || i AS s"
            f" FROM generate_series(1::bigint, {rows}) AS i",
            "ANALYZE numbers",
        )
        for _ in range(turns):
            for name, program in _PROGRAMS.items():
                _do(uri, "DROP TABLE IF EXISTS written")
                count = min(rows, _WRITTEN_MAX) if "write" in name else rows
                found[name].append(_run(program, uri, count))
    lines = [f"{'':16}{'CPU s':>9}{'wall s':>9}{'MB':>7}"]
    middle = {name: [median(each) for each in zip(*of_name, strict=True)] for name, of_name in found.items()}
    lines += [f"{name:16}{cpu:9.2f}{wall:9.2f}{peak:7.0f}" for name, (cpu, wall, peak) in middle.items()]
    for verb in ("reads", "writes"):
        cpu, wall = (middle[f"drey {verb}"][at] / middle[f"driver {verb}"][at] for at in (0, 1))
        lines.append(f"{verb}: Drey ÷ driver alone {cpu:.2f} of CPU, {wall:.2f} of wall")
    return "\n".join(lines)


def _do(uri: str, *statements: str) -> None:
    import adbc_driver_postgresql.dbapi as dbapi

    with dbapi.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _run(program: str, uri: str, rows: int) -> list[float]:
    command = [sys.executable, "-c", _FRAME + program, uri, str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    figures: list[float] = json.loads(done.stdout.splitlines()[-1])
    return figures
