"""Drey around and on Spark, beside Spark alone: ``python -m tests.bench on_spark [--rows N] [--scale S] [--runs R]``.

    export   a DataFrame to ``df.write.parquet``, to ``export_data`` and to ``format("drey")``
    import   what was written, summed up by Spark: ``spark.read.parquet`` and ``format("drey")``
    jobs     the 22 of TPC-H: the API's plan by ``-t spark``, and the same steps as calls of PySpark (``by_hand``),
             answers compared with those of the embedded cluster

Seconds, and those of processors of all processes, which others on the machine change little; each also as a ratio to
the first. All in one process and one session with two threads, in turns; the least of the runs counts.
"""

import contextlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

ROWS = 5_000_000
_THREADS = 2


def _least(runs: int, work: Mapping[str, Callable[[], object]]) -> dict[str, tuple[float, float]]:
    """Do each work in turns; return the least seconds of each, and those of processors."""
    least = dict.fromkeys(work, (float("inf"), float("inf")))
    for _ in range(runs):
        for name, each in work.items():
            least[name] = tuple(map(min, least[name], _taken(each)))
    return least


def _taken(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that a work takes, and those of processors."""
    started = time.perf_counter(), _processor_s()
    work()
    return time.perf_counter() - started[0], _processor_s() - started[1]


def _lines(title: str, least: Mapping[str, tuple[float, float]], rows: int) -> list[str]:
    first = next(iter(least.values()))
    return [
        f"{title:8} {name:24} {seconds:7.2f} s {rows / seconds / 1e6:7.2f} M rows/s {seconds / first[0]:6.2f}   "
        f"processors {busy:7.2f} s {busy / first[1]:6.2f}"
        for name, (seconds, busy) in least.items()
    ]


def report(rows: int, scale: float, runs: int, folder: Path) -> str:
    """Return the table of all three."""
    from engine.spark.session import open_session

    spark = open_session("bench", f"local[{_THREADS}]")
    return "\n".join([*_exchange(spark, rows, runs, folder), *_jobs(spark, scale, runs, folder)])


def _exchange(spark, rows: int, runs: int, folder: Path) -> list[str]:
    from engine.spark.data_source import register
    from engine.spark.export import export_data

    register(spark)
    data = spark.range(0, rows, 1, 4).selectExpr(
        "id",
        "id % 1000 AS key",
        "concat('name ', id % 50000) AS name",
        "id * 0.25D AS price",
        "date_add('2024-01-01', cast(id % 365 AS int)) AS day",
    )
    source = folder / "spark-source"
    data.write.mode("overwrite").parquet(f"file://{source}")
    data = spark.read.parquet(f"file://{source}")
    targets = {name: folder / f"spark-{name}" for name in ("parquet", "export", "drey")}
    written = _least(
        runs,
        {
            "df.write.parquet": lambda: data.write.mode("overwrite").parquet(f"file://{targets['parquet']}"),
            "export_data": lambda: export_data(data, str(targets["export"]), overwrite=True),
            'format("drey")': lambda: data.write.format("drey").mode("overwrite").save(str(targets["drey"])),
        },
    )
    sums = ("key", "price")

    def summed(frame) -> object:
        return frame.agg(dict.fromkeys(sums, "sum")).collect()

    read = _least(
        runs,
        {
            "spark.read.parquet": lambda: summed(spark.read.parquet(f"file://{targets['parquet']}")),
            'format("drey")': lambda: summed(spark.read.format("drey").load(str(targets["drey"]))),
            'format("drey"), columns': lambda: summed(
                spark.read.format("drey").option("columns", ", ".join(sums)).load(str(targets["drey"]))
            ),
        },
    )
    for path in (source, *targets.values()):
        shutil.rmtree(path, ignore_errors=True)
    return [*_lines("export", written, rows), *_lines("import", read, rows)]


def _processor_s() -> float:
    """Return the seconds of processors that this process and those below it have taken, ended ones included."""
    total = 0.0
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def _jobs(spark, scale: float, runs: int, folder: Path) -> list[str]:
    from engine import Environment
    from engine.lowering.logical_node import build_plan
    from tests.bench.by_hand import by_hand
    from tests.tpch.answers import difference
    from tests.tpch.queries import QUERIES, read_tables
    from tests.tpch.tables import generate

    source = folder / f"tpch-sf{scale:g}"
    if not source.exists():
        generate(source, scale)
    lines, totals = [], [0.0] * 4
    with (
        Environment(config={"parallelism.default": _THREADS}) as embedded,
        Environment(config={"parallelism.default": _THREADS}, target="spark") as on_spark,
    ):
        tables, oracle = read_tables(on_spark, source), read_tables(embedded, source)
        for number in sorted(QUERIES):
            found = QUERIES[number](tables).to_arrow()
            unlike = difference(found, QUERIES[number](oracle).to_arrow())
            if unlike:
                raise SystemExit(f"Q{number}: {unlike}")
            ways = (
                lambda number=number: by_hand(spark, build_plan([QUERIES[number](tables)._node], "")).toArrow(),
                lambda number=number: QUERIES[number](tables).to_arrow(),
            )
            least = [float("inf")] * 4
            for run in range(runs):
                # Who comes second finds the JVM's compiler and the files' pages warm.
                for place, way in list(enumerate(ways))[:: -1 if run % 2 else 1]:
                    least[place::2] = map(min, least[place::2], _taken(way))
            totals = [total + each for total, each in zip(totals, least, strict=True)]
            lines.append(_job_line(f"Q{number}", least))
    return [*lines, _job_line("total", totals)]


def _job_line(name: str, least: Sequence[float]) -> str:
    alone, ours, alone_busy, ours_busy = least
    return (
        f"{name:8} by hand {alone:7.2f} s   -t spark {ours:7.2f} s {ours / alone:6.2f}   "
        f"processors {alone_busy:7.2f} s {ours_busy:7.2f} s {ours_busy / alone_busy:6.2f}"
    )
