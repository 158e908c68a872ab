"""A process that ends with the one that started it, however that ends: Linux's PR_SET_PDEATHSIG.

Held by: tests/entrypoint/test_supervisor.py
"""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent_pid: int) -> None:
    """Send this process SIGTERM when its parent ends; at once if it has ended already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGTERM)
