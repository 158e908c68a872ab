"""Who watches jobs that this process runs: the command line installs a listener, scripts run without one.

on_submitted(job_id, name)      once the job is handed to the cluster
on_waiting(reason)              nobody leads the cluster at present; the job goes on when somebody does
on_progress(progress)           several times a second, in the thread that waits for the job
on_finished(result)             terminal: FINISHED
on_failed(job_id, state, error) terminal: FAILED or CANCELED
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.client.job_result import JobResult
    from engine.gateways.messages import JobProgress


class JobListener(Protocol):
    """Is told what happens to a job."""

    @property
    def wants_progress(self) -> bool:
        """Whether anybody looks at the progress."""
        ...

    def on_submitted(self, job_id: str, name: str) -> None:
        """Take note of a job."""
        ...

    def on_waiting(self, reason: str) -> None:
        """Hear that the next leader is waited for."""
        ...

    def on_progress(self, progress: JobProgress) -> None:
        """Take live numbers."""
        ...

    def on_finished(self, result: JobResult) -> None:
        """Take the result."""
        ...

    def on_failed(self, job_id: str, state: str, error: BaseException) -> None:
        """Take the failure."""
        ...


class SilentListener:
    """Watches nothing: what a plain ``python JOB.py`` has."""

    wants_progress = False

    def on_submitted(self, job_id: str, name: str) -> None:
        """Ignore it."""

    def on_waiting(self, reason: str) -> None:
        """Ignore it."""

    def on_progress(self, progress: JobProgress) -> None:
        """Ignore it."""

    def on_finished(self, result: JobResult) -> None:
        """Ignore it."""

    def on_failed(self, job_id: str, state: str, error: BaseException) -> None:
        """Ignore it."""


_current: JobListener = SilentListener()


def current_listener() -> JobListener:
    """Return the listener of this process."""
    return _current


def install_listener(listener: JobListener) -> None:
    """Make ``listener`` the one that is told about this process's jobs."""
    global _current  # noqa: PLW0603 - one command a process, set before the script starts
    _current = listener
