"""Rows of 128 bytes written into 10,000 partitions of Iceberg in 256 MiB, beside the same without partitions.

The partitions are mixed in the input. Sizes are those of the process.
"""

import shutil
from pathlib import Path

from tests.bench.lake.beside import in_turns, ratio, seconds_of
from tests.bench.lake.row import Figure

DEFAULT_ROWS = 40_000_000
PARTITIONS = 10_000
LIMIT_MB = 256
_GROUP_ROWS = 100_000
_PROGRAM = """
from pyiceberg.catalog.sql import SqlCatalog
from engine import Environment
place = arguments["place"]
catalog = SqlCatalog("bench", uri=f"sqlite:///{place}/c.db", warehouse=f"file://{place}")
catalog.create_namespace("bench")
with Environment({"parallelism.default": "2", "taskmanager.memory.process.size": arguments["limit"]}) as env:
    begin()
    rows = env.read_parquet(arguments["source"])
    rows.write_iceberg("bench.t", catalog, partition_by=PARTITION)
    result = env.execute()
    end()
files = len(list(catalog.load_table("bench.t").scan().plan_files()))
assert files >= FILES, files
"""


def figures(rows: int, runs: int, folder: Path) -> list[Figure]:
    """Write both in turns."""
    source, place = folder / f"lake-partitions-{rows}.parquet", folder / "lake-written"
    if not source.exists():
        _make(source.with_suffix(".unfinished"), rows)
        source.with_suffix(".unfinished").rename(source)

    def emptied() -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)

    programs = {
        "partitioned": _PROGRAM.replace("PARTITION", '["p"]').replace("FILES", str(min(PARTITIONS, rows // 100))),
        "plain": _PROGRAM.replace("PARTITION", "None").replace("FILES", "1"),
    }
    turns = in_turns(runs, programs, emptied, source=str(source), place=str(place), limit=f"{LIMIT_MB}mb")
    shutil.rmtree(place)
    peak = max(each["peak_mb"] for each in turns["partitioned"])
    clock = ratio(turns, "partitioned", "plain", "seconds")
    what = f"{rows * 128 / 1e9:.1f} GB into {PARTITIONS:,} partitions"
    about = f"{seconds_of(turns)}; by the clock x {clock:.2f}"
    return [
        Figure(f"{what}: processor time ÷ no partitions", ratio(turns, "partitioned", "plain"), None, 1.3, about),
        Figure(f"{what}: peak memory ÷ {LIMIT_MB} MiB", peak / (LIMIT_MB * 1.024), 1.0, None, f"{peak:.0f} MB"),
    ]


def _make(path: Path, rows: int) -> None:
    import numpy
    import pyarrow as pa
    import pyarrow.parquet as pq

    rnd = numpy.random.default_rng(1)
    schema = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("x", pa.float64()), ("s", pa.string())])
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, _GROUP_ROWS):
            ids = numpy.arange(first, min(rows, first + _GROUP_ROWS))
            raw = rnd.bytes(54 * len(ids)).hex()
            texts = [raw[at * 108 : at * 108 + 108] for at in range(len(ids))]
            parts = rnd.integers(0, PARTITIONS, len(ids), dtype=numpy.int32)
            writer.write_table(pa.table([ids, parts, rnd.random(len(ids)), texts], schema=schema))
