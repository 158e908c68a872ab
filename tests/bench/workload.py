"""What a workload is: a module with the five names of ``Workload``. A new one is one file and one line in WORKLOADS."""

import importlib
from pathlib import Path
from typing import Protocol

WORKLOADS = ("skewed_join",)
ENGINES = ("drey", "duckdb", "polars")
THREADS = 2


class Workload(Protocol):
    """Functions and constants of a workload's module."""

    TITLE: str
    ROWS: int

    def prepare(self, folder: Path, rows: int) -> None:
        """Write the input into an empty folder."""

    def output_query(self, output: Path) -> str:
        """Return SQL of DuckDB that reads an output of any engine, floats rounded where engines may differ."""

    def run_drey(self, folder: Path, output: Path) -> None: ...
    def run_duckdb(self, folder: Path, output: Path) -> None: ...
    def run_polars(self, folder: Path, output: Path) -> None: ...


def load_workload(name: str) -> Workload:
    """Return the module of a workload."""
    if name not in WORKLOADS:
        raise SystemExit(f"no workload {name}: choose from {', '.join(WORKLOADS)}")
    return importlib.import_module(f"tests.bench.{name}")  # type: ignore[return-value]
