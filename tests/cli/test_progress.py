"""The table of a job's progress on terminals of any width."""

import io

import pytest
from rich.console import Console

from engine.cli.progress import progress_table
from engine.gateways.messages import JobProgress, VertexProgress
from engine.graph.deployment import TaskCounters
from engine.ids import JobId

NAMES = ("csv source [bold]", "inner join on k -> aggregate arguments -> partial aggregate by k", "sink")


def shown(width, name="nightly [red]report[/]"):
    vertices = tuple(
        VertexProgress(each, 12, TaskCounters(rows_in=7, rows_out=1_400_000, bytes_out=10**9), {"FINISHED": 3})
        for each in NAMES
    )
    terminal = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    terminal.print(progress_table(JobProgress(JobId("a" * 32), name, "RUNNING", 1, vertices), width))
    return terminal.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 200])
def test_a_vertex_has_one_line_that_leaves_room_for_a_caret_and_c(width):
    lines = shown(width)
    assert len(lines) == 1 + len(NAMES)
    assert all(len(line.rstrip()) <= width - 3 for line in lines)
    assert all("3/12" in line for line in lines[1:])


def test_numbers_go_before_names_do():
    assert all(column in shown(120)[0] for column in ("tasks", "rows in", "rows out", "bytes out", "spilled"))
    narrow = shown(60)
    assert "rows out" in narrow[0] and "rows in" not in narrow[0] and "1,400,000" in narrow[1]
    assert narrow[2].startswith("inner join on k -> ")


def test_names_are_no_markup():
    lines = shown(120)
    assert "nightly [red]report[/]: RUNNING" in lines[0] and "csv source [bold]" in lines[1]
