"""Readiness: a daemon reports on a pipe, in a line each, whether it has started.

    ready <where it is reached>        it serves
    waiting <for what>                 it runs, and goes on trying by itself; another line follows
    failed <why>                       it ends
    warning <of what>                  its configuration is doubtful; another line follows

The script that starts a daemon passes the writing end as ``--ready-fd``; without one nothing is told. The end of the
pipe without ``ready`` is the end of the process.

Held by: tests/entrypoint/test_daemon.py
"""

from __future__ import annotations

import contextlib
import logging
import os


class Readiness:
    """The daemon's end."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        if descriptor is not None:
            os.set_inheritable(descriptor, False)

    def ready(self, where: str) -> None:
        """Report that the process serves; the first call counts."""
        self._send(f"ready {where}")
        self.close()

    def waiting(self, what: str) -> None:
        """Report the condition that the process waits for."""
        self._send(f"waiting {what}")

    def warned(self, what: str) -> None:
        """Report what is doubtful for the people that start the process."""
        self._send(f"warning {what}")

    def failed(self, why: str) -> None:
        """Report why the process ends."""
        self._send(f"failed {why}")
        self.close()

    def close(self) -> None:
        """Report nothing more; idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _send(self, line: str) -> None:
        if self._descriptor is not None:
            # No process waits any more: the script was interrupted.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._descriptor, (" ".join(line.split("\n")) + "\n").encode())


class WarningTeller(logging.Handler):
    """Reports warnings of a start, which are in the log, to the script that waits."""

    def __init__(self, readiness: Readiness) -> None:
        super().__init__(logging.WARNING)
        self._readiness = readiness

    def emit(self, record: logging.LogRecord) -> None:
        """Report a warning; an error is told where the process ends for it."""
        if record.levelno == logging.WARNING:
            self._readiness.warned(record.getMessage())
