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
from engine.config.operating_options import OPENTELEMETRY_INTERVAL
from engine.insight.disk_watch import DiskWatch
from engine.insight.loop_lag import LoopLag
from engine.insight.process_meter import ProcessMeter
from engine.rest.opentelemetry_export import Collect, OpenTelemetryExport
from engine.rest.opentelemetry_spans import Ask, SpanExport
from engine.rest.otlp_sender import otlp_sender, resource_of
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
        self._executor = ThreadPoolExecutor(max_workers=len(asked) + 3, thread_name_prefix="drey-watch")
        self._lag = LoopLag()
        self._disks = DiskWatch(asked, own=own_files)
        self.meter = ProcessMeter(self._lag.metrics, self._disks.metrics)
        ends = {f"{CERTIFICATE_ENDS}{name}": end_s for name, end_s in certificate_ends_s(configuration).items()}
        self.meter.add(lambda: ends)
        self._exports: list[OpenTelemetryExport | SpanExport] = []
        self._running: list[asyncio.Task[None]] = []

    def export(self, process: str, collect: Collect | None = None) -> None:
        """Have the metrics exported where it is configured; those of the meter unless ``collect`` has more."""
        sender = otlp_sender(self._configuration, "metrics", self._executor)
        if sender is not None:
            interval_s = self._configuration.get(OPENTELEMETRY_INTERVAL) / 1000
            collect = collect or partial(own_families, process, self.meter)
            self._exports.append(OpenTelemetryExport(sender, resource_of(process), interval_s, collect))

    def export_spans(self, process: str, ask: Ask) -> SpanExport | None:
        """Have traces of jobs exported where it is configured, and return what hears of their ends."""
        sender = otlp_sender(self._configuration, "traces", self._executor)
        if sender is None:
            return None
        export = SpanExport(sender, resource_of(process), ask)
        self._exports.append(export)
        return export

    def start(self) -> None:
        """Begin to look."""
        loop = asyncio.get_running_loop()
        self._running = [
            loop.create_task(self._lag.run(), name="event loop's lag"),
            loop.create_task(self._disks.run(self._executor), name="disks"),
            *(loop.create_task(each.run(), name="OpenTelemetry") for each in self._exports),
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
