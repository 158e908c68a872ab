"""Readiness: a daemon reports on a pipe, in one line, whether it has started.

    ready <where it is reached>        it serves
    waiting <for what>                 it runs, and goes on trying by itself; another line follows
    failed <why>                       it ends

The script that starts a daemon passes the writing end as ``--ready-fd``; without one nothing is told. The end of the
pipe without ``ready`` is the end of the process.

Held by: tests/entrypoint/test_daemon.py
"""

from __future__ import annotations

import contextlib
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
