"""Merges into a table of Delta in 512 MiB, beside deltalake's, which has no limit.

A hundredth as many rows as the table has, and into a tenth of it a tenth and six tenths of its rows. Half of the keys
are in the table, at random places of it; the rows of the others are inserted. Each turn merges into a copy of the
table, whose files are links.
"""

import shutil
from pathlib import Path

from tests.bench.lake.beside import in_turns, ratio, seconds_of
from tests.bench.lake.row import Figure

DEFAULT_ROWS = 100_000_000
LIMIT_MB = 512
_FILE_ROWS = 1_000_000
_PROGRAMS = {
    "Drey": """
from engine import Environment, delta
with Environment({"parallelism.default": "2", "taskmanager.memory.process.size": arguments["limit"]}) as env:
    begin()
    result = env.read_parquet(arguments["source"]).merge_into(delta(arguments["table"]), on=["id"])
    end(rows=result.rows_updated + result.rows_inserted)
""",
    "deltalake": """
import pyarrow.parquet as pq
from deltalake import DeltaTable
begin()
merge = DeltaTable(arguments["table"]).merge(
    pq.read_table(arguments["source"]), "t.id = s.id", source_alias="s", target_alias="t"
)
counts = merge.when_matched_update_all().when_not_matched_insert_all().execute()
end(rows=counts["num_target_rows_updated"] + counts["num_target_rows_inserted"])
""",
}


def figures(rows: int, runs: int, folder: Path) -> list[Figure]:
    """Merge in turns."""
    sizes = [(rows, rows // 100), (rows // 10, rows // 100), (rows // 10, rows * 6 // 100)]
    return [figure for size in sizes for figure in _figures(*size, runs, folder)]


def _figures(rows: int, source_rows: int, runs: int, folder: Path) -> list[Figure]:
    made, copy = folder / f"lake-merge-{rows}-{source_rows}", folder / "lake-merge-copy"
    if not made.exists():
        _make(made.with_suffix(".unfinished"), rows, source_rows)
        made.with_suffix(".unfinished").rename(made)

    def copied() -> None:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(made / "table", copy, copy_function=lambda source, target: Path(target).hardlink_to(source))

    places = {"source": str(made / "source.parquet"), "table": str(copy), "limit": f"{LIMIT_MB}mb"}
    turns = in_turns(runs, _PROGRAMS, copied, **places)
    shutil.rmtree(copy)
    assert {each["rows"] for each in [*turns["Drey"], *turns["deltalake"]]} == {source_rows}, turns
    peaks = {name: max(each["peak_mb"] for each in found) for name, found in turns.items()}
    clock = ratio(turns, "Drey", "deltalake", "seconds")
    what = f"merge of {source_rows:,} rows into {rows:,}"
    about = f"{seconds_of(turns)}; by the clock x {clock:.2f}"
    peak_about = ", ".join(f"{name} {peak:.0f} MB" for name, peak in peaks.items())
    return [
        Figure(f"{what}: processor time ÷ deltalake", ratio(turns, "Drey", "deltalake"), 1.0, 0.5, about),
        Figure(f"{what}: peak memory ÷ {LIMIT_MB} MiB", peaks["Drey"] / (LIMIT_MB * 1.024), 1.0, None, peak_about),
    ]


def _make(made: Path, rows: int, source_rows: int) -> None:
    import numpy
    import pyarrow as pa
    import pyarrow.parquet as pq
    from deltalake import write_deltalake

    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    rnd = numpy.random.default_rng(1)

    def rows_of(keys: numpy.ndarray) -> pa.Table:
        return pa.table({"id": keys, "x": rnd.random(len(keys)), "s": pa.array(keys % 1000).cast(pa.string())})

    for first in range(0, rows, _FILE_ROWS):
        # Keys of the table are even.
        keys = 2 * numpy.arange(first, min(rows, first + _FILE_ROWS))
        write_deltalake(str(made / "table"), rows_of(keys), mode="append")
    keys = rnd.choice(rows, source_rows // 2, replace=False) * 2
    pq.write_table(rows_of(numpy.concatenate([keys, keys + 1])), made / "source.parquet")
