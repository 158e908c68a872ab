"""The table: for each row and engine the median of its runs, their spread, and its ratio to the first engine.

A ratio is the median of the ratios within each turn, since the machine changes its speed between turns. Above 1 the
first engine is ahead.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

_HEAD = """\
| workload | engine | seconds (min-max) | ratio | CPU seconds | ratio | peak MB |
|---|---|---|---|---|---|---|"""


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Return results of rows as one markdown table."""
    lines = [_HEAD]
    for result in results:
        cap = result["cap_mb"]
        about = f"{result['title']}; {result['rows']:,} rows"
        if cap is not None:
            about += f"; capped at {cap} MB over the idle size"
        engines = list(result["runs"])
        first = result["runs"][engines[0]]
        for engine in engines:
            told = result["limits_mb"][engine]
            name = engine if told in (None, cap) else f"{engine}, told {told} MB"
            lines.append(f"| {about} | {name} | {_cells(result['runs'][engine], first)} |")
            about = ""
    return "\n".join(lines)


def _cells(runs: Sequence[Mapping[str, Any]], first: Sequence[Mapping[str, Any]]) -> str:
    died = [run for run in runs if run["died"]]
    if died:
        return f"died: {died[0]['died']} | | | | {max(run['peak_mb'] for run in died):.0f}"
    seconds = [run["seconds"] for run in runs]
    cpu_seconds = [run["cpu_seconds"] for run in runs]
    spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
    return (
        f"{median(seconds):.2f} ({spread}) | {_ratio(runs, first, 'seconds')} | {median(cpu_seconds):.2f}"
        f" | {_ratio(runs, first, 'cpu_seconds')} | {median(run['peak_mb'] for run in runs):.0f}"
    )


def _ratio(runs: Sequence[Mapping[str, Any]], first: Sequence[Mapping[str, Any]], what: str) -> str:
    if any(run["died"] for run in first):
        return ""
    return f"{median(run[what] / base[what] for run, base in zip(runs, first, strict=True)):.2f}"


def limits_line(limits: Mapping[str, float]) -> str:
    """Return what the machine can do as a line of text."""
    return "machine, one thread: " + ", ".join(f"{name} {rate:.2f} GB/s" for name, rate in limits.items())
