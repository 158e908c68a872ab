"""All rows of a table of PostgreSQL in two ranges of a key, and rows that are written, beside the driver alone.

Rows are dropped as they come; the driver alone reads them with two threads, which do nothing else with them. The same
rows are written into a new table; the driver alone appends them with two connections. Figures are those of the
client's process: the server's work is the same.
"""

from pathlib import Path

from tests.bench.lake.beside import in_turns, ratio, seconds_of
from tests.bench.lake.row import Figure
from tests.postgresql_server import postgresql

DEFAULT_ROWS = 20_000_000
#: rows that are written at most: they are made in memory
_WRITTEN_MAX = 2_000_000
_NUMBERS = """
import pyarrow as pa, pyarrow.compute as pc
uri, rows = arguments["uri"], arguments["rows"]
def numbers():
    ids = pa.array(range(rows), pa.int64())
    texts = pc.binary_join_element_wise("text ", ids.cast(pa.string()), "")
    return pa.table({"id": ids, "g": ids.cast(pa.int32()), "x": ids.cast(pa.float64()), "s": texts})
"""
_READ = {
    "Drey": """
from engine import Environment
with Environment({"parallelism.default": "2"}) as env:
    begin()
    env.read_database("numbers", uri, partition_on="id", partitions=2).explain(analyze=True)
    end()
""",
    "driver": """
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
}
_WRITE = {
    "Drey": """
from engine import Environment
with Environment({"parallelism.default": "2"}) as env:
    table = numbers()
    begin()
    env.from_arrow(table).write_database("written", uri)
    env.execute()
    end()
""",
    "driver": """
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


def figures(rows: int, runs: int, folder: Path) -> list[Figure]:
    """Read and write in turns."""
    found = []
    written = min(rows, _WRITTEN_MAX)
    with postgresql() as uri:
        _do(
            uri,
            "CREATE TABLE numbers AS SELECT i AS id, (i % 1000)::int AS g, i / 4.0::float8 AS x, 'text ' || i AS s"
            f" FROM generate_series(1::bigint, {rows}) AS i",
            "ANALYZE numbers",
        )
        for verb, programs, count, limits in (
            ("read", _READ, rows, (1.1, 1.0)),
            ("write", _WRITE, written, (None, None)),
        ):
            framed = {name: _NUMBERS + program for name, program in programs.items()}
            turns = in_turns(runs, framed, lambda: _do(uri, "DROP TABLE IF EXISTS written"), uri=uri, rows=count)
            clock = ratio(turns, "Drey", "driver", "seconds")
            about = f"{count:,} rows: {seconds_of(turns)}; by the clock x {clock:.2f}"
            found.append(
                Figure(f"PostgreSQL, {verb} ÷ the driver alone", ratio(turns, "Drey", "driver"), *limits, about)
            )
    return found


def _do(uri: str, *statements: str) -> None:
    import adbc_driver_postgresql.dbapi as dbapi

    with dbapi.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
