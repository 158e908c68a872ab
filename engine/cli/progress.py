"""Live progress of a job on a terminal: one line a vertex and a run-time decision, on standard error.

Nothing where there is no terminal.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.gateways.messages import JobProgress

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


def progress_table(progress: JobProgress) -> Table:
    """Return the table of what each vertex has done so far, and what was decided on the way."""
    from rich.table import Table  # noqa: PLC0415 - only where there is a terminal
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="dim", title=None)
    table.add_column(f"{progress.name}: {progress.status}", overflow="ellipsis", no_wrap=True, max_width=60)
    for column in ("tasks", "rows in", "rows out", "bytes out", "spilled"):
        table.add_column(column, justify="right")
    for vertex in progress.vertices:
        counters = vertex.counters
        table.add_row(
            vertex.name,
            f"{vertex.subtasks.get('FINISHED', 0)}/{vertex.parallelism}",
            format_count(counters.rows_in),
            format_count(counters.rows_out),
            format_bytes(counters.bytes_out),
            format_bytes(counters.spilled_bytes) if counters.spilled_bytes else "-",
        )
    if progress.decisions:
        table.caption = Text("\n".join(f"decided: {decision.text}" for decision in progress.decisions))
        table.caption_justify = "left"
    return table


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
            from rich.console import Console  # noqa: PLC0415 - as above
            from rich.live import Live  # noqa: PLC0415

            self._live = Live(console=Console(file=sys.stderr), auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(progress_table(progress), refresh=True)

    def stop(self) -> None:
        """Clear the lines."""
        if self._live is not None:
            self._live.stop()
            self._live = None
