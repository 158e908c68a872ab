"""The thread of a cluster in one process: it runs the cluster's loop, and its place is told when it does not answer.

Held by: tests/minicluster/test_cluster_loop.py
"""

from __future__ import annotations

import asyncio
import sys
import threading


def run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop in this thread until it is stopped, and close it."""
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()


def place_of(thread: threading.Thread) -> str:
    """Return the place of a thread in its code, for an error about one that does not answer."""
    frame = sys._current_frames().get(thread.ident or 0)
    where = "" if frame is None else f" is at line {frame.f_lineno} of {frame.f_code.co_filename}"
    return f"its thread{where or ' has ended'}"
