"""The table: for each engine the median of its runs, their spread, and its ratio to the first engine."""

from collections.abc import Mapping, Sequence
from statistics import median

from tests.bench.measured_run import MeasuredRun


def report(title: str, rows: int, runs: Mapping[str, Sequence[MeasuredRun]], limits: Mapping[str, float]) -> str:
    """Return the text for one workload."""
    count = len(next(iter(runs.values())))
    lines = [
        f"{title}: {rows:,} rows, median of {count} runs in turns, results equal",
        f"  {'engine':<8} {'seconds':>8} {'min-max':>13} {'ratio':>6} {'CPU s':>7} {'ratio':>6} {'peak MB':>8}",
    ]
    first = next(iter(runs.values()))
    base_seconds = median(run.seconds for run in first)
    base_cpu = median(run.cpu_seconds for run in first)
    for engine, measured in runs.items():
        seconds = [run.seconds for run in measured]
        cpu_seconds = median(run.cpu_seconds for run in measured)
        spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
        peak_mb = median(run.peak_mb for run in measured)
        lines.append(
            f"  {engine:<8} {median(seconds):>8.2f} {spread:>13} {median(seconds) / base_seconds:>6.2f}"
            f" {cpu_seconds:>7.2f} {cpu_seconds / base_cpu:>6.2f} {peak_mb:>8.0f}"
        )
    lines.append("  machine: " + ", ".join(f"{name} {rate:.2f} GB/s" for name, rate in limits.items()))
    return "\n".join(lines)
