"""ProcessWatch: the numbers of a daemon's process, and what runs to know them: its event loop's lag, its disks.

    watch = ProcessWatch(folders) ─► watch.meter.add(source) ... ─► start() ─► watch.meter.read() ... ─► await stop()

Disks are asked in threads of their own: the end of the process does not wait for one that does not answer.

Held by: tests/entrypoint/test_cluster_over_rest.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from engine.insight.disk_watch import DiskWatch
from engine.insight.loop_lag import LoopLag
from engine.insight.process_meter import ProcessMeter


class ProcessWatch:
    """The meter of one process. ``own_files`` looks what its own files take. Thread: the event loop."""

    def __init__(self, folders: Iterable[Path], own_files: Callable[[], tuple[int, int]] | None = None) -> None:
        asked = tuple(dict.fromkeys(folders))
        self._executor = ThreadPoolExecutor(max_workers=len(asked) + 1, thread_name_prefix="drey-disks")
        self._lag = LoopLag()
        self._disks = DiskWatch(asked, own=own_files)
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
        self._executor.shutdown(wait=False, cancel_futures=True)


def local_folders(*paths: str) -> list[Path]:
    """Return the folders among paths that are no prefixes of stores."""
    return [Path(path) for path in paths if path and "://" not in path]
