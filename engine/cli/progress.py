"""Live progress of a job on a terminal: one line for each vertex and run-time decision, on standard error.

Nothing is shown where there is no terminal.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.gateways.job_queue import waiting_text
from engine.gateways.messages import JobProgress, VertexProgress
from engine.shown_text import shown_line

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

_UNITS = ("B", "KB", "MB", "GB", "TB")


def format_bytes(count: float) -> str:
    """Return bytes for people: ``1.4 MB``."""
    for unit in _UNITS:
        if count < 1000 or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def format_count(count: float) -> str:
    """Return a count for people: ``1,400,000``."""
    return f"{count:,.0f}"


#: columns of numbers, and the order in which they are left out where there is no room
_COLUMNS = ("tasks", "rows in", "rows out", "bytes out", "spilled")
_LEFT_OUT = ("rows in", "bytes out", "spilled", "rows out")
_NAME_WIDTH_MAX = 60
_NAME_WIDTH_MIN = 24
_GAP = 2
#: columns left free at the end of each line: Ctrl-C shows there as ^C, which would otherwise begin a line of its own
_FREE = 3


def progress_table(progress: JobProgress, width: int) -> Table:
    """Return the table of what each vertex has done so far, and what was decided on the way.

    One line for each vertex on a terminal of ``width`` characters: columns that do not fit are left out, names cut off.
    """
    from rich.table import Table
    from rich.text import Text

    room = width - _FREE
    numbers = [_numbers(vertex) for vertex in progress.vertices]
    widths = {column: max([len(column), *(len(each[column]) for each in numbers)]) for column in _COLUMNS}
    for column in _LEFT_OUT:
        if room - sum(each + _GAP for each in widths.values()) < _NAME_WIDTH_MIN:
            del widths[column]
    name_width = max(1, min(_NAME_WIDTH_MAX, room - sum(each + _GAP for each in widths.values())))
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    title = Text(f"{shown_line(progress.name)}: {progress.status if progress.waiting is None else 'WAITING'}")
    title.truncate(name_width, overflow="ellipsis")
    table.add_column(title, overflow="ellipsis", no_wrap=True, max_width=name_width)
    for column, column_width in widths.items():
        table.add_column(column, justify="right", no_wrap=True, min_width=column_width)
    for vertex, texts in zip(progress.vertices, numbers, strict=True):
        table.add_row(Text(shown_line(vertex.name)), *(texts[column] for column in widths))
    notes = [shown_line(waiting_text(progress.waiting))] if progress.waiting is not None else []
    notes += [f"decided: {shown_line(decision.text)}" for decision in progress.decisions]
    if notes:
        table.caption = Text("\n".join(notes))
        table.caption_justify = "left"
    return table


def _numbers(vertex: VertexProgress) -> dict[str, str]:
    counters = vertex.counters
    return {
        "tasks": f"{vertex.subtasks.get('FINISHED', 0)}/{vertex.parallelism}",
        "rows in": format_count(counters.rows_in),
        "rows out": format_count(counters.rows_out),
        "bytes out": format_bytes(counters.bytes_out),
        "spilled": format_bytes(counters.spilled_bytes) if counters.spilled_bytes else "-",
    }


class TerminalProgress:
    """Shows progress while a job runs, and takes it away afterwards."""

    def __init__(self) -> None:
        self._live: Live | None = None

    @property
    def is_shown(self) -> bool:
        """Whether there is a terminal to show it on."""
        return sys.stderr.isatty()

    def update(self, progress: JobProgress) -> None:
        """Show the counters."""
        if not self.is_shown:
            return
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=sys.stderr), auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(progress_table(progress, self._live.console.width), refresh=True)

    def stop(self) -> None:
        """Clear the lines."""
        if self._live is not None:
            self._live.stop()
            self._live = None
