"""A row of the table: a module with these names. A new one is one file and its name in ROWS."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROWS = ("scan_requests", "scan_latency", "table_plans", "delta_merge", "partitioned_write", "database")


@dataclass(frozen=True)
class Figure:
    """A line of the table: a ratio, its limits, and the numbers that it comes from."""

    what: str
    ratio: float
    #: what it must be and what is aimed at, at most; None: told alone
    must: float | None
    aim: float | None
    about: str


class Row(Protocol):
    """Names of a row's module."""

    #: rows of its input unless others are asked for
    DEFAULT_ROWS: int

    def figures(self, rows: int, runs: int, folder: Path) -> list[Figure]:
        """Measure, with inputs that are made in the folder where they are missing."""


def report(names: list[str], rows: int | None, runs: int, folder: Path) -> str:
    """Return the table of some rows; of all, where none is named."""
    lines = ["| | ratio | must | aim | |", "|---|---|---|---|---|"]
    for name in names or ROWS:
        row: Row = importlib.import_module(f"tests.bench.lake.{name}")  # type: ignore[assignment]
        for each in row.figures(rows or row.DEFAULT_ROWS, runs, folder):
            mark = " (beyond it)" if each.must is not None and each.ratio > each.must else ""
            limits = [f"{limit:g}" if limit is not None else "" for limit in (each.must, each.aim)]
            lines.append(f"| {each.what} | {each.ratio:.2f}{mark} | {limits[0]} | {limits[1]} | {each.about} |")
    return "\n".join(lines)
