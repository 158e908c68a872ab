"""Command line of the benchmarks; see the package's text."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.bench.machine_limits import machine_limits
from tests.bench.measured_run import MeasuredRun, measured_run
from tests.bench.output_fingerprint import output_fingerprint
from tests.bench.report import report
from tests.bench.workload import ENGINES, WORKLOADS, load_workload


def prepared_input(name: str, rows: int, folder: Path) -> Path:
    """Return the folder of a workload's input, made unless it is there already."""
    wanted = folder / f"{name}-{rows}"
    if not wanted.exists():
        unfinished = wanted.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        load_workload(name).prepare(unfinished, rows)
        unfinished.rename(wanted)
    return wanted


def run_workload(name: str, rows: int | None, run_count: int, engines: list[str], folder: Path) -> str:
    """Run one workload with all engines in turns; return its table. Results that differ end the program."""
    workload = load_workload(name)
    rows = rows or workload.ROWS
    source = prepared_input(name, rows, folder)
    runs: dict[str, list[MeasuredRun]] = {engine: [] for engine in engines}
    fingerprints: dict[str, tuple[int, int]] = {}
    output = folder / "output"
    for turn in range(run_count):
        for engine in engines:
            shutil.rmtree(output, ignore_errors=True)
            runs[engine].append(measured_run(name, engine, source, output))
            if turn == 0:
                fingerprints[engine] = output_fingerprint(workload.output_query(output))
    shutil.rmtree(output, ignore_errors=True)
    if len(set(fingerprints.values())) > 1:
        raise SystemExit(f"{name}: results differ (rows, hash): {fingerprints}")
    return report(workload.TITLE, rows, runs, machine_limits(folder))


def main() -> None:
    """Parse the command line and print one table for each workload."""
    parser = argparse.ArgumentParser(prog="tests.bench", description="Drey beside DuckDB and Polars")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(WORKLOADS)} (default: all)")
    parser.add_argument("--rows", type=int, help="rows of the input (default: the workload's)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each engine (default 3)")
    parser.add_argument("--engines", default=",".join(ENGINES), help="in the order of their turns")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "drey-bench", help="for data")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.workloads or WORKLOADS:
        table = run_workload(name, options.rows, options.runs, options.engines.split(","), options.folder)
        sys.stdout.write(table + "\n\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
