"""SIGTERM while a script waits for its job: the job is cancelled, its leavings are removed, then the process ends.

    with leaving_on_termination(): ...      TerminatedError, a SystemExit(143), instead of a sudden death

Python ends at once on SIGTERM, with no ``finally`` and no ``atexit``: staging and spill folders would lie about until
the next start sweeps them. Only the main thread can take signals, and a script that has a handler of its own keeps it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TerminatedError(SystemExit):
    """The process was asked to end; its ``code`` is what a shell says of a process that SIGTERM ended."""


def _leave(number: int, _frame: FrameType | None) -> None:
    raise TerminatedError(128 + number)


@contextmanager
def leaving_on_termination() -> Iterator[None]:
    """Turn SIGTERM into TerminatedError where nobody else takes it."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
