"""Listeners of jobs that this process runs: the command line installs one, scripts run without.

A job that a cell of a notebook runs is shown there (notebook_progress.py).

on_submitted(job_id, name)      once the job is submitted to the cluster
on_restart(restart)             an attempt has failed, why, and when the next one begins
on_waiting(reason)              no JobManager leads at present; the job goes on when one does
on_queued(waiting)              it has no slot for some seconds: why, and how many it needs
on_progress(progress)           several times a second, in the thread that waits for the job
on_finished(result)             terminal: FINISHED
on_failed(job_id, state, error) terminal: FAILED or CANCELED

A listener that raises hears nothing more of progress. Its failure does not touch the job.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from engine.gateways.job_queue import WaitingJob, waiting_text

if TYPE_CHECKING:
    from engine.client.job_result import JobResult
    from engine.gateways.job_details import JobRestart
    from engine.gateways.messages import JobProgress

_log = logging.getLogger(__name__)


def restart_text(restart: JobRestart) -> str:
    """Return a line about an attempt that failed."""
    pause_s = restart.pause_ms / 1000
    return f"Attempt {restart.number} failed, the next one begins in {pause_s:.1f} s: {restart.cause}"


#: milliseconds that a job waits for slots before it is shown as waiting
_QUEUED_MS = 5000


def queued_text(waiting: WaitingJob) -> str:
    """Return a line about a job that waits for slots."""
    return f"Waiting for slots: {waiting_text(waiting)}"


class ProgressTeller:
    """Reports progress to a listener that wants it; restarts, long waits for slots and for a storage once each."""

    def __init__(self, listener: JobListener) -> None:
        self._listener = listener
        self._told = 0
        #: time since which the job waits for slots, and the text printed about it
        self._queued_ms: int | None = None
        self._queued: WaitingJob | None = None
        self._is_in_trouble = False

    def __call__(self, progress: JobProgress) -> None:
        """Print the changes since the last call."""
        for restart in progress.restarts:
            if restart.number > self._told:
                self._told = restart.number
                self._listener.on_restart(restart)
        self._tell_of_wait(progress)
        if progress.trouble and not self._is_in_trouble:
            self._listener.on_trouble(f"The job waits for its storage: {progress.trouble}")
        self._is_in_trouble = bool(progress.trouble)
        if self._listener.wants_progress:
            self._listener.on_progress(progress)

    def _tell_of_wait(self, progress: JobProgress) -> None:
        if progress.waiting is None:
            self._queued_ms = self._queued = None
            return
        if self._queued_ms is None:
            self._queued_ms = progress.runtime_ms
        if progress.runtime_ms - self._queued_ms >= _QUEUED_MS and progress.waiting != self._queued:
            self._queued = progress.waiting
            self._listener.on_queued(progress.waiting)


class JobListener(Protocol):
    """A listener that is told about each change of a job."""

    @property
    def wants_progress(self) -> bool:
        """Whether the progress is shown."""
        ...

    def on_submitted(self, job_id: str, name: str) -> None:
        """Take note of a job."""
        ...

    def on_waiting(self, reason: str) -> None:
        """Handle the wait for the next leader."""
        ...

    def on_queued(self, waiting: WaitingJob) -> None:
        """Handle the wait for slots."""
        ...

    def on_trouble(self, text: str) -> None:
        """Handle a storage that does not answer."""
        ...

    def on_restart(self, restart: JobRestart) -> None:
        """Handle a failed attempt."""
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
    """Watches next to nothing: what a plain ``python JOB.py`` has."""

    wants_progress = False

    def on_submitted(self, job_id: str, name: str) -> None:
        """Ignore it."""

    def on_waiting(self, reason: str) -> None:
        """Ignore it."""

    def on_queued(self, waiting: WaitingJob) -> None:
        """Log it: it may be that nothing ever comes."""
        _log.warning("%s", queued_text(waiting))

    def on_trouble(self, text: str) -> None:
        """Log it: the job ends when the storage answers."""
        _log.warning("%s", text)

    def on_restart(self, restart: JobRestart) -> None:
        """Log it: people who wait for a job should know that it fails again and again."""
        _log.warning("%s", restart_text(restart))

    def on_progress(self, progress: JobProgress) -> None:
        """Ignore it."""

    def on_finished(self, result: JobResult) -> None:
        """Ignore it."""

    def on_failed(self, job_id: str, state: str, error: BaseException) -> None:
        """Ignore it."""


class GuardedListener:
    """Passes on what happens; whatever the listener raises stays here (an interrupt from the keyboard does not)."""

    def __init__(self, listener: JobListener) -> None:
        self._listener = listener
        self._has_failed = False

    @property
    def wants_progress(self) -> bool:
        """Whether the progress is shown, and nothing has failed."""
        answers: list[bool] = []
        self._tell(lambda: answers.append(self._listener.wants_progress))
        return answers == [True] and not self._has_failed

    def on_submitted(self, job_id: str, name: str) -> None:
        """Pass it on."""
        self._tell(lambda: self._listener.on_submitted(job_id, name))

    def on_waiting(self, reason: str) -> None:
        """Pass it on."""
        self._tell(lambda: self._listener.on_waiting(reason))

    def on_queued(self, waiting: WaitingJob) -> None:
        """Pass it on."""
        self._tell(lambda: self._listener.on_queued(waiting))

    def on_trouble(self, text: str) -> None:
        """Pass it on."""
        self._tell(lambda: self._listener.on_trouble(text))

    def on_restart(self, restart: JobRestart) -> None:
        """Pass it on."""
        self._tell(lambda: self._listener.on_restart(restart))

    def on_progress(self, progress: JobProgress) -> None:
        """Pass it on, unless something has failed: there would be a failure five times a second."""
        if not self._has_failed:
            self._tell(lambda: self._listener.on_progress(progress))

    def on_finished(self, result: JobResult) -> None:
        """Pass it on."""
        self._tell(lambda: self._listener.on_finished(result))

    def on_failed(self, job_id: str, state: str, error: BaseException) -> None:
        """Pass it on."""
        self._tell(lambda: self._listener.on_failed(job_id, state, error))

    def _tell(self, event: Callable[[], None]) -> None:
        try:
            event()
        except Exception:  # the root of what is no part of the job
            self._has_failed = True
            _log.exception("what watches the job failed; the job goes on")


_current: JobListener = SilentListener()


_of_thread = threading.local()


def current_listener() -> JobListener:
    """Return the listener of this process, or of this thread where it has one."""
    listener: JobListener = getattr(_of_thread, "listener", _current)
    return listener


@contextmanager
def heard_by(listener: JobListener) -> Iterator[None]:
    """Install a listener for the jobs that this thread runs; its errors are raised where the job is waited for.

    Within another one, until its own end.
    """
    former = getattr(_of_thread, "listener", None)
    _of_thread.listener = listener
    try:
        yield
    finally:
        if former is None:
            del _of_thread.listener
        else:
            _of_thread.listener = former


def is_watched() -> bool:
    """Whether a listener is told what happens to jobs."""
    return not isinstance(_current, SilentListener)


def install_listener(listener: JobListener) -> None:
    """Make ``listener`` the one that is told about this process's jobs."""
    global _current  # noqa: PLW0603 - one command a process, set before the script starts
    _current = GuardedListener(listener)
