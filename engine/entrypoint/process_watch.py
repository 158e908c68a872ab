"""ProcessWatch: the numbers of a daemon's process, and what runs to know and to tell them: lag, disks, an export.

    watch = ProcessWatch(configuration, folders) ─► watch.meter.add(source) ... ─► watch.export(process, collect)
          ─► start() ─► watch.meter.read() ... ─► await stop()

Disks, and a receiver of metrics, are asked in threads of their own: the end of the process does not wait for one that
does not answer. Certificates are those that the process began with.

Held by: tests/entrypoint/test_cluster_over_rest.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from engine.config.loader import Configuration
from engine.insight.disk_watch import DiskWatch
from engine.insight.loop_lag import LoopLag
from engine.insight.process_meter import ProcessMeter
from engine.rest.opentelemetry_export import Collect, OpenTelemetryExport, opentelemetry_export
from engine.rest.process_families import CERTIFICATE_ENDS
from engine.rest.prometheus_routes import own_families
from engine.rpc.tls import certificate_ends_s


class ProcessWatch:
    """The meter of one process. ``own_files`` looks what its own files take. Thread: the event loop."""

    def __init__(
        self,
        configuration: Configuration,
        folders: Iterable[Path],
        own_files: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        asked = tuple(dict.fromkeys(folders))
        self._configuration = configuration
        self._executor = ThreadPoolExecutor(max_workers=len(asked) + 2, thread_name_prefix="drey-watch")
        self._lag = LoopLag()
        self._disks = DiskWatch(asked, own=own_files)
        self.meter = ProcessMeter(self._lag.metrics, self._disks.metrics)
        ends = {f"{CERTIFICATE_ENDS}{name}": end_s for name, end_s in certificate_ends_s(configuration).items()}
        self.meter.add(lambda: ends)
        self._export: OpenTelemetryExport | None = None
        self._running: list[asyncio.Task[None]] = []

    def export(self, process: str, collect: Collect | None = None) -> None:
        """Have the metrics exported where it is configured; those of the meter unless ``collect`` has more."""
        collect = collect or partial(own_families, process, self.meter)
        self._export = opentelemetry_export(self._configuration, process, collect, self._executor)

    def start(self) -> None:
        """Begin to look."""
        loop = asyncio.get_running_loop()
        self._running = [
            loop.create_task(self._lag.run(), name="event loop's lag"),
            loop.create_task(self._disks.run(self._executor), name="disks"),
            *(loop.create_task(each.run(), name="OpenTelemetry") for each in (self._export,) if each is not None),
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
