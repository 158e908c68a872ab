"""Questions asked one after the other: each with its CPU seconds, wall time and memory, in turns of the engines.

    ask(job, answers, digest)               in the process of an engine: figures.json, and what digest leaves of answers
    report(asked, source, about, ...)       a table of all engines; a digest that is not DuckDB's ends the program

An engine's turn is one process that asks all, one after the other, as a session does: its first question pays for its
start. Each is measured within: wall time, processor time of the process and the children it waited for, and the largest
resident memory, which Linux forgets on demand. Digests are written when the time is taken.
"""

import json
import os
import resource
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.machine_limits import warm_files, warm_memory
from tests.bench.measured_run import measured_run
from tests.bench.workload import THREADS, Job
from tests.tpch.answers import difference

_ORACLE = "duckdb"

Turn = dict[str, dict[str, dict[str, float]]]


@dataclass(frozen=True)
class Asked:
    """A workload of questions: the module's name, the questions' names, and what the table's lines are called.

    ``unlike``: engines whose answers are not compared, since they have other types.
    """

    workload: str
    names: list[str]
    prefix: str = ""
    unlike: tuple[str, ...] = ()


def ask(job: Job, answers: dict[str, Callable[[], pa.Table]], digest: Callable[[pa.Table], pa.Table]) -> None:
    """Ask all questions; write what each took to ``figures.json``, and the digests."""
    job.output.mkdir()
    figures = {}
    for _ in range(job.rounds - 1):
        for answer in answers.values():
            answer()
    for name, answer in answers.items():
        Path("/proc/self/clear_refs").write_text("5")
        seconds, cpu_seconds = time.perf_counter(), _cpu_seconds()
        table = answer()
        figures[name] = {
            "seconds": time.perf_counter() - seconds,
            "cpu_seconds": _cpu_seconds() - cpu_seconds,
            "peak_mb": _peak_mb(),
        }
        pq.write_table(digest(table), job.output / f"{name}.parquet")
        del table
    (job.output / "figures.json").write_text(json.dumps(figures))


def numbered(table: pa.Table) -> pa.Table:
    """Return a table whose columns are named by their places: engines give them names of their own."""
    return table.rename_columns([str(number) for number in range(table.num_columns)])


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def _peak_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def report(
    asked: Asked,
    source: Path,
    about: str,
    runs: int,
    engines: list[str],
    folder: Path,
    limit_mb: int | None,
    rounds: int = 1,
) -> str:
    """Run all engines in turns and return a table; an answer that is not DuckDB's ends the program."""
    warm_files(source)
    turns = [turn(asked, source, engines, folder / f"turn-{os.getpid()}", limit_mb, rounds) for _ in range(runs)]
    kept = folder / f"result-{asked.workload}-{source.name}{f'@{limit_mb}' if limit_mb else ''}.json"
    kept.write_text(json.dumps(turns, indent=1))
    about += f", {THREADS} threads, medians of {runs} runs{f', told {limit_mb} MB' if limit_mb else ''}"
    about += f", each asked {rounds} times and the last one measured" if rounds > 1 else ""
    return f"{about}\n\n{_table(asked, turns, engines)}"


def turn(
    asked: Asked,
    source: Path,
    engines: list[str],
    folder: Path,
    limit_mb: int | None,
    rounds: int = 1,
    groups: Mapping[str, Path] = MappingProxyType({}),
) -> Turn:
    """Run each engine once; return for each its figures by query, the whole process as ``process``.

    ``groups``: control groups of engines that run within one.
    """
    found: Turn = {}
    try:
        for engine in engines:
            (folder / engine / "spill").mkdir(parents=True)
            job = Job(source, folder / engine / "output", folder / engine / "spill", limit_mb, rounds)
            warm_memory()
            process = asdict(measured_run(asked.workload, engine, job, group=groups.get(engine)))
            found[engine] = {**json.loads((job.output / "figures.json").read_text()), "process": process}
        _check(asked, folder, engines)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _check(asked: Asked, folder: Path, engines: list[str]) -> None:
    oracle = next((engine for engine in engines if engine.startswith(_ORACLE)), None)
    if oracle is None:
        return
    for number in asked.names:
        wanted = pq.read_table(folder / oracle / "output" / f"{number}.parquet")
        for engine in (each for each in engines if each not in asked.unlike):
            differs = difference(pq.read_table(folder / engine / "output" / f"{number}.parquet"), wanted)
            if differs:
                raise SystemExit(f"{asked.prefix}{number}: {engine}'s answer is not DuckDB's: {differs}")


def _table(asked: Asked, turns: list[Turn], engines: list[str]) -> str:
    """Return CPU seconds, wall seconds and peak memory of each query; ratios of the first engine's CPU seconds."""
    first, peers = engines[0], engines[1:]
    head = [f"{engine}: CPU s, wall s, MB" for engine in engines]
    head += [f"{first} ÷ {peer}" for peer in peers] + ([f"{first} ÷ best"] if peers else [])
    lines = ["| | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    for name, numbers in (*((f"{asked.prefix}{number}", [number]) for number in asked.names), ("all", asked.names)):
        cells = [_cells(turns, engine, numbers) for engine in engines]
        cells += [f"{_ratio(turns, first, [peer], numbers):.2f}" for peer in peers]
        cells += [f"{_ratio(turns, first, peers, numbers):.2f}"] if peers else []
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    whole = [_cells(turns, engine, ["process"]) for engine in engines]
    lines.append("| process | " + " | ".join([*whole, *[""] * (len(head) - len(engines))]) + " |")
    return "\n".join(lines)


def total(turn: Turn, engine: str, numbers: list[str], what: str) -> float:
    return sum(turn[engine][number][what] for number in numbers)


def _cells(turns: list[Turn], engine: str, numbers: list[str]) -> str:
    cpu_seconds = median(total(turn, engine, numbers, "cpu_seconds") for turn in turns)
    seconds = median(total(turn, engine, numbers, "seconds") for turn in turns)
    peak_mb = median(max(turn[engine][number]["peak_mb"] for number in numbers) for turn in turns)
    return f"{cpu_seconds:.2f}, {seconds:.2f}, {peak_mb:.0f}"


def _ratio(turns: list[Turn], first: str, peers: list[str], numbers: list[str]) -> float:
    """Return the median over the turns of CPU seconds against those of the best of the peers."""
    return median(
        total(turn, first, numbers, "cpu_seconds") / min(total(turn, peer, numbers, "cpu_seconds") for peer in peers)
        for turn in turns
    )
