"""A job of one row: what a process of an engine holds after it is its idle size. No workload of the table."""

from pathlib import Path

from tests.bench import group

TITLE = "one row"
ROWS = 4


def prepare(folder: Path, rows: int) -> None:
    group.prepare(folder, rows)


run_drey = group.run_drey
run_duckdb = group.run_duckdb
run_polars = group.run_polars
