"""What a workload is: a module with the names of ``Workload``. A new one is one file and a line or two in TABLE."""

import importlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ENGINES = ("drey", "duckdb", "polars")
THREADS = 2


@dataclass(frozen=True)
class Row:
    """A line of the table: a workload, and what an engine's process may hold beyond its idle size (None: anything)."""

    workload: str
    cap_mb: int | None = None

    @property
    def name(self) -> str:
        """As it is written on the command line: ``group`` or ``group@200``."""
        return self.workload if self.cap_mb is None else f"{self.workload}@{self.cap_mb}"


TABLE = (
    Row("skewed_join"),
    Row("sort"),
    Row("sort", 256),
    Row("lineitem_join"),
    Row("lineitem_join", 200),
    Row("group"),
    Row("group", 200),
    Row("windows"),
    Row("asof"),
)


@dataclass(frozen=True)
class Job:
    """One run of one engine."""

    source: Path
    #: does not exist yet
    output: Path
    #: an empty folder for what spills
    spill: Path
    #: what the engine is told that it may hold beyond its idle size; None: nothing
    limit_mb: int | None = None
    #: The number of times that each question is asked; the last time is measured.
    rounds: int = 1

    def process_size(self) -> dict[str, object]:
        """Return Drey's settings: the limit, when there is one, as the size of its whole process."""
        return {} if self.limit_mb is None else {"taskmanager.memory.process.size": f"{self.limit_mb}mb"}

    def drey_config(self, managed_share: float | None = None) -> dict[str, object]:
        """Return Drey's settings: the limit, when there is one, as the one number that a person sets.

        A share of it for operators is given where the job has no Python functions, whose workers have a share, too.
        """
        if self.limit_mb is None:
            return {}
        # The process size counts interpreter and libraries too, with a quarter.
        config: dict[str, object] = {"taskmanager.memory.process.size": f"{self.limit_mb * 4 // 3}mb"}
        if managed_share is not None:
            config["taskmanager.memory.managed.size"] = f"{int(self.limit_mb * managed_share)}mb"
        return config

    def duckdb_settings(self) -> str:
        """Return SQL that sets threads and, when there is one, the memory limit and where to spill."""
        settings = f"SET threads = {THREADS}; SET preserve_insertion_order = false;"
        if self.limit_mb is not None:
            settings += f" SET memory_limit = '{self.limit_mb}MB'; SET temp_directory = '{self.spill}';"
        return settings


class Workload(Protocol):
    """Functions and constants of a workload's module."""

    TITLE: str
    ROWS: int

    def prepare(self, folder: Path, rows: int) -> None:
        """Write the input into an empty folder."""

    def output_query(self, output: Path) -> str:
        """Return SQL of DuckDB that reads an output of any engine, floats rounded where engines may differ."""

    def check(self, output: Path) -> None:
        """Raise when an output is wrong in a way that the fingerprint does not see."""

    def run_drey(self, job: Job) -> None: ...
    def run_duckdb(self, job: Job) -> None: ...
    def run_polars(self, job: Job) -> None: ...


def load_workload(name: str) -> Workload:
    """Return the module of a workload."""
    return importlib.import_module(f"tests.bench.{name}")  # type: ignore[return-value]


def rows_named(names: list[str]) -> list[Row]:
    """Return the rows of the table by name; a workload's name alone means all its rows, and none all of the table."""
    found: list[Row] = []
    for name in names or sorted({row.workload for row in TABLE}, key=[row.workload for row in TABLE].index):
        capped = re.fullmatch(r"(\w+)@(\d+)", name)
        matching = [row for row in TABLE if name in (row.workload, row.name)]
        if capped and any(row.workload == capped[1] for row in TABLE):
            matching = [Row(capped[1], int(capped[2]))]
        if not matching:
            raise SystemExit(f"no workload {name}: choose from kernels, {', '.join(row.name for row in TABLE)}")
        found += matching
    return found


def prepared_input(name: str, rows: int, folder: Path) -> Path:
    """Return the folder of a workload's input, made unless it is there already."""
    wanted = folder / f"{name}-{rows}"
    if not wanted.exists():
        unfinished = wanted.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        load_workload(name).prepare(unfinished, rows)
        unfinished.rename(wanted)
    return wanted
