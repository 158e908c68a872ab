"""Progress of a job in a notebook: a table below the cell that is replaced as the job goes on, one line at its end.

    is_notebook()          whether the code that runs is a cell of a kernel: Jupyter, VS Code, Colab
    NotebookProgress()     a listener for one job
    listener_of_job()      it where there is a notebook and no other listener
    display_html(text)     shows HTML below the cell; only where there is a notebook

IPython is used where it runs already, and never loaded. Interrupting the cell cancels the job, as Ctrl-C does
elsewhere.

Held by: tests/client/test_notebook_progress.py
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from engine.client.job_listener import GuardedListener, JobListener, SilentListener, current_listener
from engine.gateways.job_queue import WaitingJob, waiting_text
from engine.shown_html import headed_html, table_html
from engine.shown_sizes import size_text

if TYPE_CHECKING:
    from engine.client.job_result import JobResult
    from engine.gateways.messages import JobProgress, VertexProgress

_HEAD = ("vertex", "tasks", "rows in", "rows out", "bytes out", "spilled")


def is_notebook() -> bool:
    """Whether what is displayed reaches a page: there is a kernel, not a shell in a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def listener_of_job() -> JobListener:
    """Return the listener of a job that begins in this thread."""
    listener = current_listener()
    return GuardedListener(NotebookProgress()) if isinstance(listener, SilentListener) and is_notebook() else listener


def display_html(text: str, *, display_id: bool = False) -> Any:
    """Show HTML below the cell; return a handle by which it can be replaced, where there is to be one."""
    from IPython.display import HTML, display  # type: ignore[import-not-found, unused-ignore]

    return display(HTML(text), display_id=display_id)


def progress_html(progress: JobProgress) -> str:
    """Return the table of what each vertex has done so far, and what was decided on the way."""
    status = progress.status if progress.waiting is None else f"WAITING: {waiting_text(progress.waiting)}"
    rows = [_row(vertex) for vertex in progress.vertices]
    notes = [headed_html(f"decided: {decision.text}") for decision in progress.decisions]
    title = f"{progress.name}: {status}, {progress.runtime_ms / 1000:.1f} s"
    return headed_html(title, table_html(_HEAD, rows), *notes)


def _row(vertex: VertexProgress) -> tuple[str, ...]:
    counters = vertex.counters
    return (
        vertex.name,
        f"{vertex.subtasks.get('FINISHED', 0)}/{vertex.parallelism}",
        f"{counters.rows_in:,}",
        f"{counters.rows_out:,}",
        size_text(counters.bytes_out),
        size_text(counters.spilled_bytes) if counters.spilled_bytes else "-",
    )


class NotebookProgress(SilentListener):
    """Shows one job. Nothing is shown of a job that has ended before its first progress."""

    wants_progress = True

    def __init__(self) -> None:
        self._display: Any = None
        self._name = ""

    def on_queued(self, waiting: WaitingJob) -> None:
        """Print nothing: the table shows it."""

    def on_progress(self, progress: JobProgress) -> None:
        """Replace the table."""
        self._name = progress.name
        self._show(progress_html(progress))

    def on_finished(self, result: JobResult) -> None:
        """Leave one line."""
        if self._display is not None:
            self._show(headed_html(f"{result.name}: {result.state} after {result.runtime_ms / 1000:.1f} s"))

    def on_failed(self, job_id: str, state: str, error: BaseException) -> None:
        """Leave one line; the error itself is shown by the cell."""
        if self._display is not None:
            self._show(headed_html(f"{self._name}: {state} (job {job_id})"))

    def _show(self, text: str) -> None:
        from IPython.display import HTML  # type: ignore[import-not-found, unused-ignore]

        if self._display is None:
            self._display = display_html(text, display_id=True)
        else:
            self._display.update(HTML(text))
