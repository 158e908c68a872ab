"""``python -m engine.entrypoint.historyserver``: shows jobs that have ended, while no cluster need be there.

    folder of ended jobs (jobstore.dir) ── read again every few seconds ─► JobStore ─► GET routes of the REST API

It has a Dispatcher that knows ended jobs only and a ResourceManager without TaskExecutors, so that every page looks
as it did on the JobManager. What changes something is not served. Source: Flink's HistoryServer.
Held by: tests/entrypoint/test_cluster_over_rest.py
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence

from engine.clock import SystemClock
from engine.closing import close_all_async
from engine.config.network_options import ALLOWED_HOSTS, HISTORY_ADDRESS, HISTORY_BIND_HOST, HISTORY_PORT
from engine.config.options import HISTORY_REFRESH_INTERVAL, JOB_STORE_CACHE, JOB_STORE_CAPACITY, JOB_STORE_EXPIRATION
from engine.dispatcher.dispatcher import DISPATCHER_ADDRESS, Dispatcher
from engine.dispatcher.job_archive import JobArchive
from engine.dispatcher.job_handle import TakenJob
from engine.dispatcher.job_keeper import JobKeeper
from engine.dispatcher.job_store import JobStore
from engine.entrypoint.daemon import DaemonContext, build_parser, run_daemon
from engine.entrypoint.process_watch import ProcessWatch, local_folders
from engine.entrypoint.servers import ProcessServer, advertised_host, load_credentials, load_readers
from engine.entrypoint.storage_places import history_folder
from engine.errors import NotYetSupportedError
from engine.gateways.protocol import this_program
from engine.graph.job_graph import JobGraph
from engine.insight.log_folder import LogFolder
from engine.jobmaster.job_journal import Journal
from engine.jobmaster.job_master import JobMaster
from engine.network_address import is_wildcard
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS, ResourceManager, ResourceManagerSettings
from engine.rest.prometheus_routes import families_here
from engine.rest.routes import rest_routes
from engine.rest.services import RestServices
from engine.rpc.health import NotReady
from engine.rpc.local_gateway import LocalRpcService

_log = logging.getLogger("engine.entrypoint.historyserver")  # not __main__

_EPOCH = 0
_HEARTBEAT_S = 3600.0


class HistoryServer:
    """All components of a history server's process."""

    def __init__(self, context: DaemonContext) -> None:
        self._context = context
        configuration = context.configuration
        clock = SystemClock()
        self._store = JobStore(
            configuration.get(JOB_STORE_CAPACITY),
            JobArchive(history_folder(configuration, context.places)),
            configuration.get(JOB_STORE_CACHE),
            configuration.get(JOB_STORE_EXPIRATION),
            clock,
        )
        rpc = LocalRpcService()
        self._dispatcher = Dispatcher(rpc, _EPOCH, _no_job, context.on_fatal, JobKeeper(self._store))
        self._resource_manager = ResourceManager(
            rpc, _EPOCH, ResourceManagerSettings(_HEARTBEAT_S, 2 * _HEARTBEAT_S), clock, context.on_fatal
        )
        for endpoint in (self._dispatcher, self._resource_manager):
            rpc.start(endpoint)
        address = configuration.get(HISTORY_ADDRESS)
        bind_host = configuration.get(HISTORY_BIND_HOST) or address
        told = advertised_host(HISTORY_ADDRESS.key, None if is_wildcard(address) else address, bind_host)
        self._server = ProcessServer(
            this_program("HistoryServer"),
            configuration,
            load_credentials(configuration, bind_host),
            bind_host,
            configuration.get(HISTORY_PORT),
            [told, *configuration.get(ALLOWED_HOSTS)],
            readers=load_readers(configuration, bind_host),
        )
        folder = history_folder(configuration, context.places)
        self._watch = ProcessWatch(configuration, local_folders(folder, str(context.places.log)))
        services = RestServices(
            lambda: rpc.connect(DISPATCHER_ADDRESS, _EPOCH),
            lambda: rpc.connect(RESOURCE_MANAGER_ADDRESS, _EPOCH),
            configuration,
            clock,
            LogFolder(context.log_file),
            self._watch.meter,
        )
        self._watch.export("historyserver", lambda: families_here(services))
        self._server.http.add_routes(route for route in rest_routes(services) if route.method == "GET")

    async def start(self) -> None:
        """Listen, and look for new jobs from time to time."""
        await self._server.start()
        self._watch.start()
        self._dispatcher.spawn(self._refresh(), "refresh")
        self._server.health.why_not_ready = lambda: None
        self._context.readiness.ready(self._server.url)

    async def _refresh(self) -> None:
        interval_s = self._context.configuration.get(HISTORY_REFRESH_INTERVAL) / 1000
        while True:
            await asyncio.sleep(interval_s)
            try:
                await self._store.refresh()
            except OSError as error:
                _log.warning("ended jobs could not be read again: %s", error)

    async def stop(self, reason: str) -> None:
        """Stop serving."""
        self._server.health.why_not_ready = lambda: NotReady.STOPPING
        _log.info("the history server ends: %s", reason)
        await close_all_async([self._server.stop, self._watch.stop, self._dispatcher.stop, self._resource_manager.stop])


def _no_job(job_graph: JobGraph, journal: Journal, taken: TakenJob | None, order: int) -> JobMaster:
    raise NotYetSupportedError(f"running {job_graph.name} on a history server")


def main(words: Sequence[str] | None = None) -> int:
    """Run a history server to its end and return the exit code."""
    return run_daemon("historyserver", HistoryServer, build_parser("historyserver").parse_args(words))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
