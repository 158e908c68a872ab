"""What more subtasks cost: eight queries of TPC-H with parallelism 1, 2, 8 and 16, DuckDB with as many threads.

    python -m tests.bench cores [--scale 1] [--runs 3] [--limit-mb 1000]

All processors of the machine are there for both. ``drey`` has at most a subtask for each processor, as users have it;
``whole`` is Drey with as many as are set, on however few processors. Processor time that rises with the subtasks is
work that each of them does anew; the clock shows what of it is done by one at a time. Queries are asked twice, the
second time is measured. A model (clock_model) says the clock on more processors.

The share of the interpreter's lock is shown where py-spy is installed: samples in which a thread holds it, 250 a
second, in a round of its own.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from types import MappingProxyType

import pyarrow as pa

from tests.bench import clock_model, questions, tpch
from tests.bench.machine_limits import warm_files
from tests.bench.workload import Job

_NUMBERS = (1, 3, 5, 6, 9, 13, 18, 21)
_SUBTASKS = (1, 2, 8, 16)
_SAMPLES_PER_S = 250
ASKED = questions.Asked("cores", [str(number) for number in _NUMBERS], prefix="Q")


def _run_whole(subtasks: int, job: Job) -> None:
    _run_drey(subtasks, job, {"parallelism.max-per-processor": subtasks})


def _run_drey(subtasks: int, job: Job, settings: Mapping[str, object] = MappingProxyType({})) -> None:
    from engine import Environment
    from tests.tpch.queries import QUERIES, read_tables

    _use_all_processors()
    config = {**job.process_size(), **settings, "parallelism.default": subtasks}
    with Environment(config=config) as env:
        tables = read_tables(env, job.source)
        answers = _answers(lambda number: QUERIES[number](tables).to_arrow())
        questions.ask(job, answers, digest=questions.numbered)
        share = _lock_share(answers, job.output)
        kept = job.output / "figures.json"
        kept.write_text(json.dumps({**json.loads(kept.read_text()), "lock": {"share": share}}))


def _run_duckdb(threads: int, job: Job) -> None:
    import duckdb

    from tests.tpch.sql_queries import QUERIES, views

    _use_all_processors()
    connection = duckdb.connect()
    connection.execute(f"{job.duckdb_settings()} SET threads = {threads};")
    connection.execute(views(job.source))
    answers = _answers(lambda number: connection.sql(QUERIES[number]).to_arrow_table())
    questions.ask(job, answers, digest=questions.numbered)


def _answers(answer: Callable[[int], pa.Table]) -> dict[str, Callable[[], pa.Table]]:
    return {str(number): partial(answer, number) for number in _NUMBERS}


def __getattr__(name: str) -> Callable[[Job], None]:
    """Return what runs an engine: ``run_drey_8``, ``run_duckdb_8``."""
    for prefix, run in (("run_drey_", _run_drey), ("run_whole_", _run_whole), ("run_duckdb_", _run_duckdb)):
        if name.startswith(prefix):
            return partial(run, int(name.removeprefix(prefix)))
    raise AttributeError(name)


def _use_all_processors() -> None:
    os.sched_setaffinity(0, range(os.cpu_count() or 1))


def _lock_share(answers: dict[str, Callable[[], pa.Table]], folder: Path) -> float | None:
    """Ask all questions under py-spy; return the share of processor time with the lock held; None without it."""
    program = shutil.which("py-spy")
    if program is None:
        return None
    stacks = folder / "stacks"
    command = [program, "record", "--gil", "--nonblocking", "-f", "raw", "-r", str(_SAMPLES_PER_S), "-o", str(stacks)]
    with subprocess.Popen([*command, "-p", str(os.getpid())], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as spy:
        time.sleep(1)  # it reads the interpreter's symbols
        began = time.process_time()
        for answer in answers.values():
            answer()
        used = time.process_time() - began
        spy.send_signal(signal.SIGINT)
        spy.communicate()
    samples = sum(int(line.rsplit(" ", 1)[1]) for line in stacks.read_text().splitlines())
    return samples / _SAMPLES_PER_S / used


def report(scale: float, runs: int, folder: Path, limit_mb: int | None) -> str:
    """Run both engines in turns and return a table; an answer that is not DuckDB's ends the program."""
    source = tpch.tables_of(scale, folder)
    warm_files(source)
    engines = [f"{engine}_{count}" for count in _SUBTASKS for engine in ("drey", "whole", "duckdb")]
    turns = [
        questions.turn(ASKED, source, engines, folder / f"turn-{os.getpid()}", limit_mb, rounds=2) for _ in range(runs)
    ]
    about = f"{len(_NUMBERS)} queries of TPC-H at scale factor {scale:g}, {os.cpu_count()} processors"
    head = f"{about}, medians of {runs} runs\n\n| | CPU s | ÷ at 2 | wall s | ÷ at 2 | MB | lock |\n{'|---' * 7}|\n"
    ordered = sorted(engines, key=lambda engine: engine.split("_")[0])
    return head + "\n".join(_line(turns, engine) for engine in ordered) + "\n" + _model(turns)


def _model(turns: list[questions.Turn]) -> str:
    """Return what the model says of Drey on more processors, "" where the lock was not measured."""
    shares = _lock_shares(turns, "drey_2")
    if not shares:
        return ""
    clocks = [
        median(questions.total(turn, f"drey_{count}", ASKED.names, "seconds") for turn in turns) for count in (1, 2)
    ]
    return "\n" + clock_model.said(clock_model.Parts.measured(*clocks, median(shares)))


def _lock_shares(turns: list[questions.Turn], engine: str) -> list[float]:
    return [turn[engine]["lock"]["share"] for turn in turns if turn[engine].get("lock", {}).get("share") is not None]


def _line(turns: list[questions.Turn], engine: str) -> str:
    """Return the line of an engine with a number of subtasks, beside itself with two."""
    with_two = f"{engine.rsplit('_', 1)[0]}_2"
    cells = []
    for what in ("cpu_seconds", "seconds"):
        sums = [(questions.total(turn, engine, ASKED.names, what), turn) for turn in turns]
        ratios = [found / questions.total(turn, with_two, ASKED.names, what) for found, turn in sums]
        cells += [f"{median(found for found, _ in sums):.2f}", f"{median(ratios):.2f}"]
    cells.append(f"{median(max(turn[engine][name]['peak_mb'] for name in ASKED.names) for turn in turns):.0f}")
    shares = _lock_shares(turns, engine)
    cells.append(f"{median(shares):.3f}" if shares else "")
    return f"| {engine.replace('_', ', ')} | " + " | ".join(cells) + " |"
