"""ProcessWatch: the numbers of a daemon's process, and what runs to know them: its event loop's lag, its disks.

    watch = ProcessWatch(folders, executor) ─► watch.meter.add(source) ... ─► start() ─► watch.meter ... ─► await stop()

Held by: tests/entrypoint/test_cluster_over_rest.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import Executor
from pathlib import Path

from engine.insight.disk_watch import DiskWatch
from engine.insight.loop_lag import LoopLag
from engine.insight.process_meter import ProcessMeter


class ProcessWatch:
    """The meter of one process. Thread: the event loop."""

    def __init__(self, folders: Iterable[Path], executor: Executor) -> None:
        self._executor = executor
        self._lag = LoopLag()
        self._disks = DiskWatch(folders)
        self.meter = ProcessMeter(self._lag.metrics, self._disks.metrics)
        self._running: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to look."""
        loop = asyncio.get_running_loop()
        self._running = [
            loop.create_task(self._lag.run(), name="event loop's lag"),
            loop.create_task(self._disks.run(self._executor), name="disks"),
        ]

    async def stop(self) -> None:
        """Look no more; idempotent."""
        running, self._running = self._running, []
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def local_folders(*paths: str) -> list[Path]:
    """Return the folders among paths that are no prefixes of stores."""
    return [Path(path) for path in paths if path and "://" not in path]
