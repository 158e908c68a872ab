"""DiskWatch: free and used bytes of the disks of some folders, and of the process's own files, for metrics.

    run(executor): every 5 s, in a thread for each folder ─► metrics() -> {"Status.Disk.Free./data1/tmp": 4.2e9, ...}
                   and one for all files of the process   ─►              {"Status.Disk.Used": 2e6, ...}

A disk may not answer for ever, as a network's does when its server is gone. It holds up one thread, neither the event
loop nor the other disks, and its numbers are missing a minute later.

Thread: the event loop.
Held by: tests/rest/test_process_meter.py
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Final

from engine.clock import Clock, SystemClock

DISK_FREE: Final = "Status.Disk.Free."
DISK_USED: Final = "Status.Disk.Used."
#: bytes of spilled rows and stored results: limit of a folder, where it has one, and those that count
DISK_LIMIT: Final = "Status.Disk.Limit."
DISK_COUNTED: Final = "Status.Disk.Counted."
_PAUSE_S = 5.0
_KNOWN_S = 60.0


class DiskWatch:
    """The disks of the folders, which need not be there.

    Args: own: looks how many bytes the process's own files take, and how many are free beside them. Thread: any.
    """

    def __init__(
        self, folders: Iterable[Path], clock: Clock | None = None, own: Callable[[], tuple[int, int]] | None = None
    ) -> None:
        self._questions: dict[str, Callable[[], tuple[int, int]]] = {
            f".{folder}": partial(_bytes_of, folder) for folder in folders
        }
        if own is not None:
            self._questions[""] = own
        self._clock = clock or SystemClock()
        #: time of the last answer of each disk, with free and used bytes
        self._known: dict[str, tuple[float, int, int]] = {}
        self._asked: dict[str, asyncio.Future[tuple[int, int]]] = {}

    async def run(self, executor: Executor) -> None:
        """Look for ever."""
        while True:
            self.look(executor)
            await asyncio.sleep(_PAUSE_S)

    def look(self, executor: Executor) -> None:
        """Ask all disks that have answered the last question."""
        loop = asyncio.get_running_loop()
        for name, question in self._questions.items():
            if name not in self._asked:
                asked = self._asked[name] = loop.run_in_executor(executor, question)
                asked.add_done_callback(lambda done, name=name: self._answered(name, done))  # type: ignore[misc]

    def _answered(self, name: str, done: asyncio.Future[tuple[int, int]]) -> None:
        del self._asked[name]
        if done.cancelled() or isinstance(done.exception(), OSError):
            self._known.pop(name, None)
        else:
            self._known[name] = (self._clock.monotonic_s(), *done.result())

    def metrics(self) -> dict[str, float]:
        """Return the answers of the last minute."""
        values: dict[str, float] = {}
        for name, (known_s, free, used) in self._known.items():
            if self._clock.monotonic_s() - known_s <= _KNOWN_S:
                values[f"Status.Disk.Free{name}"] = float(free)
                values[f"Status.Disk.Used{name}"] = float(used)
        return values


def _bytes_of(folder: Path) -> tuple[int, int]:
    """Return the bytes that an ordinary user may still write, and those in use, as ``df`` tells them."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize, (status.f_blocks - status.f_bfree) * status.f_frsize
