"""Thread dump: the stack of every thread of this process, as text.

Held by: tests/rest/test_process_routes.py
"""

from __future__ import annotations

import sys
import threading
import traceback

from engine.gateways.insight import ThreadInfo


def thread_dump() -> tuple[ThreadInfo, ...]:
    """Return every thread with the Python frames that it is in, by name."""
    frames = sys._current_frames()
    threads = []
    for thread in sorted(threading.enumerate(), key=lambda each: each.name):
        frame = frames.get(thread.ident or -1)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
        kind = " daemon" if thread.daemon else ""
        threads.append(ThreadInfo(thread.name, f'"{thread.name}" Id={thread.native_id}{kind}\n{stack}'))
    return tuple(threads)
