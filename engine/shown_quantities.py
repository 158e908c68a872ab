"""Numbers and names as people read them.

Held by: tests/rest/test_job_routes.py
"""

from __future__ import annotations

import time

_SECOND_MS = 1000
_MINUTE_S = 60
_HOUR_S = 3600


def count_text(count: int) -> str:
    """Return a number of things: ``1,234``."""
    return f"{count:,}"


def duration_text(duration_ms: int) -> str:
    """Return a duration: ``12 ms``, ``3.4 s``, ``2 m 05 s``, ``1 h 02 m``; "" when there is none."""
    if duration_ms < 0:
        return ""
    if duration_ms < _SECOND_MS:
        return f"{duration_ms} ms"
    seconds = duration_ms / 1000
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < _HOUR_S:
        return f"{int(seconds // 60)} m {int(seconds % 60):02d} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} m"


def time_text(time_ms: int) -> str:
    """Return a moment in this machine's zone; "" when there is none."""
    return "" if time_ms < 0 else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ms / 1000))


def chain_text(name: str) -> str:
    """Return the name of a vertex, its operators joined by arrows that are not broken in two."""
    return name.replace(" -> ", " → ")
