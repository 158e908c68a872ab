"""The epoch of a standalone JobManager: it only grows, also when the clock is set back or the process starts again.

Without a quorum nobody hands out numbers. The milliseconds of the start do, as long as each is larger than the one
before; that one is kept in a file beside the pid file.
"""

from __future__ import annotations

import os
from pathlib import Path

from engine.clock import Clock


def next_epoch(path: Path, clock: Clock) -> int:
    """Return the epoch of a JobManager that starts now, and note it."""
    try:
        last = int(path.read_text())
    except (FileNotFoundError, ValueError):
        last = 0
    epoch = max(clock.wall_ms(), last + 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(f"{epoch}\n")
    temporary.replace(path)
    return epoch
