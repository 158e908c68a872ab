"""What one number costs: workloads with the process size alone, and with splits of it made by hand, in turns.

    python -m tests.bench splits [WORKLOAD@PROCESS_MB ...] [--rows N] [--runs 3]

Each split sets ``taskmanager.memory.managed.fraction`` beside the process size, which divides what is left otherwise.
A split whose processes held more than the default's and a tenth more than they were given is no better split, and
is left out of the best. The ratio is what counts: CPU seconds with one number against those of the best split, and
wall seconds too, medians of the turns.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tests.bench.machine_limits import warm_memory
from tests.bench.measured_run import MeasuredRun, measured_run
from tests.bench.workload import Job, prepared_input

#: of each workload the process size in MB and the rows
CASES = {
    "lineitem_join": (266, 15_000_000),
    "group": (266, 10_000_000),
    "sort": (266, 4_000_000),
    "skewed_join": (266, 3_000_000),
    "windows": (266, 4_000_000),
}
_FRACTIONS = (None, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85)
_EXCESS = 1.1

Runs = dict[float | None, list[MeasuredRun]]


def report(names: list[str], rows: int | None, turns: int, folder: Path) -> str:
    """Run the workloads, all of them if none is named; return a table with a line for each split."""
    lines = [f"{'workload':24}{'managed':>9}{'CPU s':>9}{'wall s':>9}{'MB':>7}"]
    for name in names or list(CASES):
        workload, _, size = name.partition("@")
        if workload not in CASES:
            raise SystemExit(f"no workload {workload}: choose from {', '.join(CASES)}")
        process_mb, usual_rows = CASES[workload]
        process_mb = int(size or process_mb)
        runs = _runs(workload, process_mb, rows or usual_rows, turns, folder)
        for fraction, of_split in runs.items():
            word = "default" if fraction is None else f"{fraction:g}"
            if any(run.died for run in of_split):
                lines.append(f"{workload:24}{word:>9}  {of_split[0].died}")
                continue
            figures = f"{_cpu_seconds(of_split):9.2f}{_seconds(of_split):9.2f}{_peak_mb(of_split):7.0f}"
            lines.append(f"{workload:24}{word:>9}{figures}")
        lines.append(_against_best(workload, process_mb, runs))
    return "\n".join(lines)


def _runs(workload: str, process_mb: int, rows: int, turns: int, folder: Path) -> Runs:
    source = prepared_input(workload, rows, folder)
    runs: Runs = {fraction: [] for fraction in _FRACTIONS}
    for _ in range(turns):
        for fraction, of_split in runs.items():
            job = Job(source, folder / "output", folder / "spill")
            shutil.rmtree(job.output, ignore_errors=True)
            shutil.rmtree(job.spill, ignore_errors=True)
            job.spill.mkdir()
            warm_memory()
            with _split(process_mb, fraction):
                of_split.append(measured_run(workload, "drey", job, limit_bytes=1 << 62))
    shutil.rmtree(folder / "output", ignore_errors=True)
    return runs


@contextmanager
def _split(process_mb: int, fraction: float | None) -> Iterator[None]:
    """Give the processes that start within it their memory."""
    settings = {"DREY_TASKMANAGER_MEMORY_PROCESS_SIZE": f"{process_mb}mb"}
    if fraction is not None:
        settings["DREY_TASKMANAGER_MEMORY_MANAGED_FRACTION"] = str(fraction)
    os.environ.update(settings)
    try:
        yield
    finally:
        for name in settings:
            del os.environ[name]


def _against_best(workload: str, process_mb: int, runs: Runs) -> str:
    default = runs[None]
    most = max(process_mb * 1.048576 * _EXCESS, _peak_mb(default) * _EXCESS)
    fair = [of for of in runs.values() if not any(run.died for run in of) and _peak_mb(of) <= most]
    cpu_ratio = _cpu_seconds(default) / min(map(_cpu_seconds, fair))
    ratio = _seconds(default) / min(map(_seconds, fair))
    return f"{workload} in {process_mb} MB: one number ÷ best split {cpu_ratio:.2f} of CPU, {ratio:.2f} of wall\n"


def _cpu_seconds(runs: list[MeasuredRun]) -> float:
    return median(run.cpu_seconds for run in runs)


def _seconds(runs: list[MeasuredRun]) -> float:
    return median(run.seconds for run in runs)


def _peak_mb(runs: list[MeasuredRun]) -> float:
    return median(run.peak_mb for run in runs)
