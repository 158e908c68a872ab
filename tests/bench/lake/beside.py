"""Programs in turns, and the ratio of each turn: the machine changes its speed between them."""

from collections.abc import Callable
from statistics import median

from tests.bench.lake.measured import measured

Figures = dict[str, float]


def in_turns(
    runs: int, programs: dict[str, str], before: Callable[[], None] = lambda: None, **arguments: object
) -> dict[str, list[Figures]]:
    """Return the figures of each program for each turn. before: called before each of them."""
    found: dict[str, list[Figures]] = {name: [] for name in programs}
    for _ in range(runs):
        for name, program in programs.items():
            before()
            found[name].append(measured(program, **arguments))
    return found


def ratio(found: dict[str, list[Figures]], ours: str, peer: str, what: str = "cpu_seconds") -> float:
    """Return the median of the ratios within turns."""
    return median(one[what] / other[what] for one, other in zip(found[ours], found[peer], strict=True))


def seconds_of(found: dict[str, list[Figures]], what: str = "cpu_seconds") -> str:
    """Return the medians of all programs as text."""
    shown = (f"{name} {median(each[what] for each in runs):.2f} s" for name, runs in found.items())
    return ", ".join(shown)
