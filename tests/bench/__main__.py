"""Command line of the benchmarks; see the package's text."""

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from tests.bench import (
    closure,
    contained,
    cores,
    correlated,
    dbbench,
    functions,
    kernels,
    on_spark,
    sorted_groups,
    splits,
    start,
    tpcds,
    tpch,
    wide,
)
from tests.bench.lake import row as lake
from tests.bench.machine_limits import machine_limits, warm_memory
from tests.bench.measured_run import MeasuredRun, idle_bytes, measured_run
from tests.bench.output_fingerprint import output_fingerprint
from tests.bench.report import limits_line, table
from tests.bench.workload import ENGINES, TABLE, Job, Row, load_workload, prepared_input, rows_named


def idle_sizes(engines: list[str], folder: Path) -> dict[str, int]:
    """Return the idle size of each engine's process in bytes."""
    source = prepared_input("idle", 4, folder)
    if source != folder / "idle" and not (folder / "idle").exists():
        (folder / "idle").symlink_to(source, target_is_directory=True)
    sizes = {}
    for engine in engines:
        _emptied(folder, "idle-output", "spill")
        sizes[engine] = idle_bytes(engine, folder)
    return sizes


def _emptied(folder: Path, *names: str) -> None:
    for name in names:
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "spill").mkdir(exist_ok=True)


def _limits_mb(cap_mb: int | None) -> list[int | None]:
    """Return what an engine is told, one after the other, until it stays within the cap."""
    return [None] if cap_mb is None else [cap_mb, cap_mb * 3 // 4, cap_mb // 2]


def run_row(row: Row, rows: int, run_count: int, engines: list[str], folder: Path) -> dict[str, object]:
    """Run one row of the table with all engines in turns; return its result. Outputs that differ end the program."""
    workload = load_workload(row.workload)
    source = prepared_input(row.workload, rows, folder)
    idle = idle_sizes(engines, folder) if row.cap_mb is not None else {}
    runs: dict[str, list[MeasuredRun]] = {engine: [] for engine in engines}
    fingerprints: dict[str, tuple[int, int]] = {}
    limits_mb = {engine: _limits_mb(row.cap_mb) for engine in engines}
    job = Job(source, folder / "output", folder / "spill")
    for turn in range(run_count):
        for engine in engines:
            if turn > 0 and runs[engine][0].died:
                runs[engine].append(runs[engine][0])
                continue
            cap_bytes = idle[engine] + row.cap_mb * 1_000_000 if row.cap_mb is not None else None
            for limit_mb in list(limits_mb[engine]):
                _emptied(folder, "output", "spill")
                warm_memory()
                run = measured_run(row.workload, engine, replace(job, limit_mb=limit_mb), cap_bytes)
                if not run.died or turn > 0:
                    limits_mb[engine] = [limit_mb]
                    break
            runs[engine].append(run)
            if turn == 0 and not run.died:
                fingerprints[engine] = output_fingerprint(workload.output_query(job.output))
                workload.check(job.output)
    _emptied(folder, "output", "spill")
    if len(set(fingerprints.values())) > 1:
        raise SystemExit(f"{row.name}: results differ (rows, hash): {fingerprints}")
    return {
        "title": workload.TITLE,
        "rows": rows,
        "cap_mb": row.cap_mb,
        "limits_mb": {engine: limits[-1] for engine, limits in limits_mb.items()},
        "runs": {engine: [asdict(run) for run in of_engine] for engine, of_engine in runs.items()},
        "idle_mb": {engine: size / 1e6 for engine, size in idle.items()},
        "limits": machine_limits(folder),
    }


def main() -> None:
    """Parse the command line, run what is asked for, print one table."""
    parser = argparse.ArgumentParser(prog="tests.bench", description="Drey beside DuckDB and Polars")
    names = ", ".join(row.name for row in TABLE)
    parser.add_argument(
        "workloads",
        nargs="*",
        metavar="WORKLOAD",
        help=f"of {names} (default: all), kernels, functions, on_spark, sorted_groups, splits, start, tpch, tpcds, "
        "correlated, closure, contained, cores, dbbench, wide, lake",
    )
    parser.add_argument("--rows", type=int, help="rows of the input (default: the workload's)")
    parser.add_argument("--scale", type=float, default=tpch.SCALE, help="scale factor of TPC (default 1)")
    parser.add_argument("--limit-mb", type=int, help="what engines may hold (questions)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each engine (default 3)")
    parser.add_argument("--rounds", type=int, default=1, help="of questions, the last one measured (tpch, tpcds)")
    parser.add_argument("--engines", default=",".join(ENGINES), help="in the order of their turns")
    default = os.environ.get("DREY_BENCH_DIR") or Path(tempfile.gettempdir()) / "drey-bench"
    parser.add_argument("--folder", type=Path, default=Path(default), help="for data and results")
    parser.add_argument("--resume", action="store_true", help="keep results that are there already")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.workloads == ["kernels"]:
        sys.stdout.write(kernels.report(options.rows or kernels.ROWS, options.folder) + "\n")
        return
    if options.workloads == ["sorted_groups"]:
        sys.stdout.write(sorted_groups.report(options.rows or sorted_groups.ROWS, options.runs) + "\n")
        return
    if options.workloads[:1] == ["functions"]:
        only = " ".join(options.workloads[1:])
        sys.stdout.write(functions.report(options.rows or functions.ROWS, options.runs, only) + "\n")
        return
    if options.workloads[:1] == ["lake"]:
        text = lake.report(options.workloads[1:], options.rows, options.runs, options.folder)
        sys.stdout.write(text + "\n")
        return
    if options.workloads == ["start"]:
        sys.stdout.write(start.report(options.runs) + "\n")
        return
    if options.workloads[:1] == ["splits"]:
        sys.stdout.write(splits.report(options.workloads[1:], options.rows, options.runs, options.folder) + "\n")
        return
    if options.workloads == ["on_spark"]:
        rows = options.rows or on_spark.ROWS
        sys.stdout.write(on_spark.report(rows, options.scale, options.runs, options.folder) + "\n")
        return
    if options.workloads == ["tpch"]:
        engines = options.engines.split(",")
        text = tpch.report(options.scale, options.runs, engines, options.folder, options.limit_mb, options.rounds)
        sys.stdout.write(text + "\n")
        return
    if options.workloads == ["tpcds"]:
        text = tpcds.report(options.scale, options.runs, options.folder, options.limit_mb, options.rounds)
        sys.stdout.write(text + "\n")
        return
    if options.workloads == ["contained"]:
        rows = options.rows or wide.ROWS
        text = contained.report(options.scale, rows, options.runs, options.folder, options.limit_mb)
        sys.stdout.write(text + "\n")
        return
    if options.workloads == ["cores"]:
        sys.stdout.write(cores.report(options.scale, options.runs, options.folder, options.limit_mb) + "\n")
        return
    if options.workloads == ["closure"]:
        rows = options.rows or closure.ROWS
        sys.stdout.write(closure.report(rows, options.runs, options.folder, options.limit_mb) + "\n")
        return
    if options.workloads == ["correlated"]:
        sys.stdout.write(correlated.report(options.scale, options.runs, options.folder, options.limit_mb) + "\n")
        return
    for name, asked in (("dbbench", dbbench), ("wide", wide)):
        if options.workloads == [name]:
            engines, rows = options.engines.split(","), options.rows or asked.ROWS
            sys.stdout.write(asked.report(rows, options.runs, engines, options.folder, options.limit_mb) + "\n")
            return
    results = []
    for row in rows_named(options.workloads):
        rows = options.rows or load_workload(row.workload).ROWS
        kept = options.folder / f"result-{row.name}-{rows}.json"
        if not (options.resume and kept.exists()):
            result = run_row(row, rows, options.runs, options.engines.split(","), options.folder)
            kept.write_text(json.dumps(result, indent=1))
            sys.stderr.write(table([result]) + "\n" + limits_line(result["limits"]) + "\n")
        results.append(json.loads(kept.read_text()))
    sys.stdout.write(f"{table(results)}\n\n{limits_line(results[-1]['limits'])}\n")


if __name__ == "__main__":
    main()
