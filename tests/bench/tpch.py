"""The 22 queries of TPC-H: Drey, DuckDB and Polars in turns, each query's answer compared with DuckDB's.

An engine's turn is one process that asks all 22, one after the other, as a session does: its first query pays for its
start. Each query is measured within: wall time, processor time of the process and the children it waited for, and
the largest resident memory, which Linux forgets on demand. The answers are written beside, when the time is taken.

    python -m tests.bench tpch [--scale 1] [--runs 3] [--limit-mb 1000]

With ``--limit-mb`` Drey is given it as the size of its process and DuckDB as its memory limit, and nothing else; Polars
has no such setting that it keeps to.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.measured_run import measured_run
from tests.bench.workload import THREADS, Job
from tests.tpch.answers import difference
from tests.tpch.tables import generate

SCALE = 1.0
_NUMBERS = range(1, 23)
_ORACLE = "duckdb"


def run_drey(job: Job) -> None:
    from engine import Environment
    from tests.tpch.queries import QUERIES, read_tables

    config = {} if job.limit_mb is None else {"taskmanager.memory.process.size": f"{job.limit_mb}mb"}
    with Environment(config=config) as env:
        tables = read_tables(env, job.source)
        _ask(job, lambda number: QUERIES[number](tables).to_arrow())


def run_duckdb(job: Job) -> None:
    import duckdb

    from tests.tpch.sql_queries import QUERIES, views

    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    connection.execute(views(job.source))
    _ask(job, lambda number: connection.sql(QUERIES[number]).to_arrow_table())


def run_polars(job: Job) -> None:
    from tests.tpch.polars_queries import QUERIES, read_tables

    tables = read_tables(job.source)
    _ask(job, lambda number: QUERIES[number](tables).collect(engine="streaming").to_arrow())


def _ask(job: Job, answer: Callable[[int], pa.Table]) -> None:
    """Ask all queries; write what each took to ``figures.json``, and the answers."""
    job.output.mkdir()
    figures = {}
    for number in _NUMBERS:
        Path("/proc/self/clear_refs").write_text("5")
        seconds, cpu_seconds = time.perf_counter(), _cpu_seconds()
        table = answer(number)
        figures[number] = {
            "seconds": time.perf_counter() - seconds,
            "cpu_seconds": _cpu_seconds() - cpu_seconds,
            "peak_mb": _peak_mb(),
        }
        pq.write_table(table, job.output / f"{number}.parquet")
    (job.output / "figures.json").write_text(json.dumps(figures))


def _cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _peak_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


Turn = dict[str, dict[str, dict[str, float]]]


def report(scale: float, runs: int, engines: list[str], folder: Path, limit_mb: int | None) -> str:
    """Run all engines in turns and return a table; an answer that is not DuckDB's ends the program."""
    source = folder / f"tpch-sf{scale:g}"
    if not source.exists():
        unfinished = source.with_suffix(".unfinished")
        generate(unfinished, scale)
        unfinished.rename(source)
    turns = [_turn(source, engines, folder / f"turn-{os.getpid()}", limit_mb) for _ in range(runs)]
    kept = folder / f"result-tpch-sf{scale:g}{f'@{limit_mb}' if limit_mb else ''}.json"
    kept.write_text(json.dumps(turns, indent=1))
    about = f"TPC-H at scale factor {scale:g}, {THREADS} threads, medians of {runs} runs"
    return f"{about}{f', told {limit_mb} MB' if limit_mb else ''}\n\n{_table(turns, engines)}"


def _turn(source: Path, engines: list[str], folder: Path, limit_mb: int | None) -> Turn:
    """Run each engine once; return for each its figures by query, the whole process as ``process``."""
    found: Turn = {}
    try:
        for engine in engines:
            (folder / engine / "spill").mkdir(parents=True)
            job = Job(source, folder / engine / "output", folder / engine / "spill", limit_mb)
            process = asdict(measured_run("tpch", engine, job))
            found[engine] = {**json.loads((job.output / "figures.json").read_text()), "process": process}
        _check(folder, engines)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _check(folder: Path, engines: list[str]) -> None:
    if _ORACLE not in engines:
        return
    for number in _NUMBERS:
        wanted = pq.read_table(folder / _ORACLE / "output" / f"{number}.parquet")
        for engine in engines:
            differs = difference(pq.read_table(folder / engine / "output" / f"{number}.parquet"), wanted)
            if differs:
                raise SystemExit(f"Q{number}: {engine}'s answer is not DuckDB's: {differs}")


def _table(turns: list[Turn], engines: list[str]) -> str:
    """Return CPU seconds, wall seconds and peak memory of each query; ratios of the first engine's CPU seconds."""
    first, peers = engines[0], engines[1:]
    head = [f"{engine}: CPU s, wall s, MB" for engine in engines]
    head += [f"{first} ÷ {peer}" for peer in peers] + ([f"{first} ÷ best"] if peers else [])
    lines = ["| | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    for name, numbers in (*((f"Q{number}", [str(number)]) for number in _NUMBERS), ("all", list(map(str, _NUMBERS)))):
        cells = [_cells(turns, engine, numbers) for engine in engines]
        cells += [f"{_ratio(turns, first, [peer], numbers):.2f}" for peer in peers]
        cells += [f"{_ratio(turns, first, peers, numbers):.2f}"] if peers else []
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    whole = [_cells(turns, engine, ["process"]) for engine in engines]
    lines.append("| process | " + " | ".join([*whole, *[""] * (len(head) - len(engines))]) + " |")
    return "\n".join(lines)


def _sum(turn: Turn, engine: str, numbers: list[str], what: str) -> float:
    return sum(turn[engine][number][what] for number in numbers)


def _cells(turns: list[Turn], engine: str, numbers: list[str]) -> str:
    cpu_seconds = median(_sum(turn, engine, numbers, "cpu_seconds") for turn in turns)
    seconds = median(_sum(turn, engine, numbers, "seconds") for turn in turns)
    peak_mb = median(max(turn[engine][number]["peak_mb"] for number in numbers) for turn in turns)
    return f"{cpu_seconds:.2f}, {seconds:.2f}, {peak_mb:.0f}"


def _ratio(turns: list[Turn], first: str, peers: list[str], numbers: list[str]) -> float:
    """Return the median over the turns of CPU seconds against those of the best of the peers."""
    return median(
        _sum(turn, first, numbers, "cpu_seconds") / min(_sum(turn, peer, numbers, "cpu_seconds") for peer in peers)
        for turn in turns
    )
