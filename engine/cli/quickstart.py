"""``bin/quickstart``: the main job from nothing, and a report of what happened.

1.4 million instruments, 13 in 14 of them in one currency  ─►  Spark cleans and exports them
─►  the optimizer sees the sizes in the manifest and broadcasts the currencies
─►  two subtasks join at equal load  ─►  committed Parquet files

Held by: tests/integration/test_installation.py
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from engine.cli.progress import format_bytes, format_count
from engine.config.home import ROOT, is_checkout
from engine.config.home import command as path_of_command
from engine.examples.generate_instruments import CURRENCIES, CURRENCY_COUNT, INSTRUMENTS, generate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

JOB = Path(__file__).resolve().parents[1] / "examples" / "skew_join.py"
_DATA = (ROOT if is_checkout() else Path()) / "quickstart-data"
_BAR_WIDTH = 40
_SPARK_TYPES = {"string": "STRING", "double": "DOUBLE", "int32": "INT", "int64": "BIGINT"}


def spark_schema(schema: pa.Schema) -> str:
    """Return a schema as Spark writes it: ``RIC STRING, LotSize INT``."""
    return ", ".join(f"{field.name} {_SPARK_TYPES[str(field.type)]}" for field in schema)


@contextmanager
def step(console: Console, text: str) -> Iterator[None]:
    """Print a step of the command, and how long it took."""
    started = time.monotonic()
    with console.status(text):
        yield
    console.print(f"[green]✓[/] {text} [dim]{time.monotonic() - started:.1f} s[/]")


def export(source: Path, schema: pa.Schema, target: Path) -> None:
    """Export one CSV input with Spark."""
    from engine.spark.export_command import main as spark_export

    arguments = ["--input", str(source), "--format", "csv", "--schema", spark_schema(schema)]
    if spark_export([*arguments, "--output", str(target), "--quiet"]) != 0:
        raise SystemExit(1)


def job_command(data: Path, result: Path, *words: str) -> str:
    """Run ``flink-run job WORDS`` for the main job as a user would and return its standard output."""
    command = [str(path_of_command("flink-run")), "job", *words, str(JOB)]
    arguments = ["--format", "records", "--input", str(data), "--out", str(result)]
    done = subprocess.run([*command, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.returncode)
    return done.stdout


def show_report(console: Console, report: dict[str, Any], plan: Sequence[str], result: Path, rows_in: int) -> None:
    """Print what a person wants to know after the first job."""
    join = next(vertex for vertex in report["vertices"] if "oin" in vertex["name"])
    rows_out = sum(subtask["rows_out"] for subtask in join["subtasks"])
    spilled = sum(subtask["spilled_bytes"] for vertex in report["vertices"] for subtask in vertex["subtasks"])
    seconds = report["runtime_ms"] / 1000
    facts = Table.grid(padding=(0, 2))
    facts.add_row("rows in", format_count(rows_in))
    facts.add_row("rows out", format_count(rows_out))
    facts.add_row("runtime", f"{seconds:.2f} s  [dim]({format_count(rows_in / max(seconds, 1e-3))} rows/s)[/]")
    facts.add_row("spilled", format_bytes(spilled) if spilled else "nothing")
    facts.add_row("result", str(result))
    console.print(Panel(facts, title=f"skew join: {report['state']}", title_align="left", expand=False))
    console.print("[bold]plan[/]")
    for line in "; ".join(plan).split("; "):
        console.print(f"  {line}", highlight=False, soft_wrap=True)
    console.print("[bold]rows per subtask of the join[/]  [dim]13 in 14 rows have the same key[/]")
    counts = [subtask["rows_in"] for subtask in join["subtasks"]]
    for index, count in enumerate(counts):
        bar = "█" * max(1, round(_BAR_WIDTH * count / max(counts)))
        console.print(f"  {index}  [cyan]{bar}[/] {format_count(count)}", highlight=False)
    folder = result.parent.parent
    run, job = ("bin/flink-run", JOB.relative_to(ROOT)) if is_checkout() else ("flink-run", JOB)
    console.print("\n[bold]next[/]")
    for line in (
        f"{run} job info {job} --format records --input {folder / 'records'} --out x",
        f"{run} {job} --input {folder / 'csv'} --out {folder / 'results' / 'csv'}",
        *(["less README.md"] if is_checkout() else []),
    ):
        console.print(f"  {line}", highlight=False, soft_wrap=True)


def build_parser() -> argparse.ArgumentParser:
    """Return the command line of ``bin/quickstart``."""
    parser = argparse.ArgumentParser(prog="quickstart", description="Generate, export, join, report.")
    parser.add_argument("--rows", type=int, default=1_400_000, metavar="N", help="instruments (default 1,400,000)")
    parser.add_argument(
        "--data",
        type=Path,
        default=_DATA,
        metavar="DIR",
        help="working folder, replaced each time",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps and show the report."""
    options = build_parser().parse_args(arguments)
    console = Console()
    if find_spec("pyspark") is None:
        console.print("[red]quickstart needs PySpark, which is an extra: pip install 'drey\\[spark]'[/]")
        return 1
    folder: Path = options.data.resolve()
    marker = folder / ".drey-quickstart"
    if folder.exists() and not marker.exists() and any(folder.iterdir()):
        console.print(f"[red]{folder} exists and was not made by quickstart; choose another with --data[/]")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    marker.touch()
    with step(console, f"generated {format_count(options.rows)} instruments and {CURRENCY_COUNT} currencies"):
        generate(options.rows, folder / "csv", 1, "csv")
    with step(console, "exported them with Spark: Parquet and a manifest with statistics"):
        export(folder / "csv" / "instruments", INSTRUMENTS, folder / "records" / "instruments")
        export(folder / "csv" / "currencies.csv", CURRENCIES, folder / "records" / "currencies")
    result = folder / "results" / "records"
    result.parent.mkdir()
    with step(console, "joined them on the embedded cluster"):
        plan = job_command(folder / "records", result, "info", "--short").splitlines()
        report = json.loads(job_command(folder / "records", result, "submit", "--json"))
    show_report(console, report, plan, result, options.rows + CURRENCY_COUNT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
