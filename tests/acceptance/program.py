"""What a program is: data sets, the same in SQL over the same tables, the order of the result, how it is written."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine import DataSet, Environment
from tests.acceptance.tables import NAMES


@dataclass(frozen=True)
class Inputs:
    """What a program reads: ``inputs.facts`` is the table of that name, by its file."""

    environment: Environment
    paths: dict[str, str]
    #: for what the program itself writes on the way; emptied afterwards
    scratch: Path

    def __getattr__(self, name: str) -> DataSet:
        if name not in self.paths:
            raise AttributeError(name)
        return self.environment.read_parquet(self.paths[name])


@dataclass(frozen=True)
class Order:
    """One key of a sorted result."""

    column: str
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True)
class Program:
    """A program. ``sql`` names tables as if they were DuckDB's."""

    build: Callable[[Inputs], DataSet]
    sql: str
    order: tuple[Order, ...] = ()
    #: csv, parquet or records
    writes: str = "parquet"
    #: tables that the SQL does not name
    reads: tuple[str, ...] = field(default=())
    has_functions: bool = False

    @property
    def name(self) -> str:
        """As it is written on the command line."""
        return self.build.__name__

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that it and its SQL read."""
        named = set(re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", self.sql))
        return tuple(name for name in NAMES if name in named or name in self.reads)
