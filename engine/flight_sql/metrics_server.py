"""MetricsServer: GET /metrics, /healthz and /readyz of a server of Flight SQL, over HTTP on a port of its own.

Its loop has a thread. Beyond this machine callers need the read token or the cluster's secret, and TLS where it is on,
as they do for the other processes.

Held by: tests/flight_sql/test_record.py
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence

from engine.config.loader import Configuration
from engine.entrypoint.process_watch import ProcessWatch, local_folders
from engine.entrypoint.servers import load_credentials, load_readers
from engine.iomanager.spill_directory import spill_directories
from engine.rest.prometheus_routes import process_metrics_route
from engine.rpc.health import Health
from engine.rpc.http_server import HttpServer
from engine.rpc.tls import tls_contexts


class MetricsServer:
    """Listens from its construction to ``close``. Raises: ConfigurationError where no port is free."""

    def __init__(
        self,
        configuration: Configuration,
        host: str,
        ports: Sequence[int],
        sources: Sequence[Callable[[], Mapping[str, float]]],
    ) -> None:
        self._watch = ProcessWatch(configuration, local_folders(*spill_directories(configuration)))
        self._watch.export("flight-sql")
        for source in sources:
            self._watch.meter.add(source)
        tls = tls_contexts(configuration)
        self._scheme = "http" if tls is None else "https"
        self._server = HttpServer(
            host,
            ports,
            load_credentials(configuration, host),
            None if tls is None else tls[0],
            readers=load_readers(configuration, host),
        )
        health = Health()
        health.why_not_ready = lambda: None
        self._server.add_routes([*health.routes, process_metrics_route("flight-sql", self._watch.meter)])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="drey-flight-sql-metrics", daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """``host:port``."""
        return self._server.address

    @property
    def url(self) -> str:
        """The address as people ask it: ``http://host:port/metrics``, or https where TLS is on."""
        return f"{self._scheme}://{self.address}/metrics"

    async def _start(self) -> None:
        self._watch.start()
        await self._server.start()

    async def _stop(self) -> None:
        await self._watch.stop()
        await self._server.stop()

    def close(self) -> None:
        """Listen no more."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
