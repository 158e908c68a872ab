"""What a JobManager runs while it leads: ResourceManager, Dispatcher, and a JobMaster for each job, under one epoch.

    components = LeadingComponents(...) ─► await start() ─► (messages come) ─► await stop()

``start`` recovers what the leader before has stored, and returns when all components can be reached: only then may
others hear who leads. It may be cancelled. The next leadership gets new components.

Source: Flink's DispatcherResourceManagerComponent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

from engine.blob.blob_server import BlobServer
from engine.clock import Clock
from engine.closing import close_all_async
from engine.config.loader import Configuration
from engine.config.options import (
    HA_TYPE,
    HEARTBEAT_INTERVAL,
    HEARTBEAT_TIMEOUT,
    JOB_STORE_CACHE,
    JOB_STORE_CAPACITY,
    JOB_STORE_EXPIRATION,
    LOAD_BALANCE_MODE,
    RUNNING_JOBS_MAX,
)
from engine.dispatcher.dispatcher import Dispatcher
from engine.dispatcher.job_archive import JobArchive
from engine.dispatcher.job_handle import TakenJob
from engine.dispatcher.job_keeper import JobKeeper
from engine.dispatcher.job_storage import StoredJobs
from engine.dispatcher.job_store import JobStore
from engine.entrypoint.storage_places import StoragePlaces
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.jobmaster.job_facts import RecoveredJob
from engine.jobmaster.job_journal import Journal
from engine.jobmaster.job_master import JobMaster
from engine.jobmaster.job_master_settings import job_master_settings, job_turn
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS, ResourceManager
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.gateway import RpcService
from engine.rpc.leadership import Leadership
from ha.interfaces import StateHandleStore

_log = logging.getLogger(__name__)

#: a leader whose storage cannot be opened gives up after so many tries, some three seconds
STORAGE_TRIES = 5
#: seconds that jobs have to be cancelled in when the process stops; the daemon's stop has 10
CANCEL_S = 5.0


def job_store(configuration: Configuration, folder: Path, clock: Clock) -> JobStore:
    """Return the ended jobs that lie in ``folder``; in memory where that cannot be."""
    capacity, expiration_ms = configuration.get(JOB_STORE_CAPACITY), configuration.get(JOB_STORE_EXPIRATION)
    try:
        return JobStore(capacity, JobArchive(folder), configuration.get(JOB_STORE_CACHE), expiration_ms, clock)
    except OSError as error:
        _log.warning("ended jobs will be forgotten with this process: %s: %s", folder, error)
        return JobStore(capacity, expiration_ms=expiration_ms, clock=clock)


class LeadingComponents:
    """Components of one leadership."""

    def __init__(
        self,
        rpc: RpcService,
        epoch: int,
        configuration: Configuration,
        places: StoragePlaces,
        handles: StateHandleStore,
        clock: Clock,
        blocking_work: Executor,
        is_leading: Callable[[], bool],
        on_fatal: Callable[[BaseException], None],
        blobs: BlobServer,
    ) -> None:
        self.epoch = epoch
        self._rpc = rpc
        self._configuration = configuration
        self._places = places
        self._storage = StoredJobs(places.folder, handles, epoch, is_leading, places.is_durable)
        self._clock = clock
        self._blocking_work = blocking_work
        self._is_leading = is_leading
        self._on_fatal = on_fatal
        self._blobs = blobs
        resource_manager_address = rpc.address_of(RESOURCE_MANAGER_ADDRESS)
        self._job_master_settings = job_master_settings(configuration, resource_manager_address, "exponential-delay")
        self._endpoints: list[RpcEndpoint] = []
        self._resource_manager: ResourceManager | None = None
        self._dispatcher: Dispatcher | None = None

    async def start(self) -> None:
        """Recover jobs, then make everything reachable; FencedError when this process leads no more."""
        loop = asyncio.get_running_loop()
        ended = await loop.run_in_executor(
            self._blocking_work, job_store, self._configuration, self._places.history, self._clock
        )
        # Where another one may lead, it may have the folder that this one lacks.
        open_tries = STORAGE_TRIES if self._configuration.get(HA_TYPE) == "ZOOKEEPER" else None
        keeper = JobKeeper(ended, self._storage, self._blocking_work, self._blobs.remove_job, open_tries)
        dispatcher = Dispatcher(self._rpc, self.epoch, self._job_master, self._on_fatal, keeper, self._release)
        self._endpoints.append(dispatcher)
        await dispatcher.recover()
        _log.info("starting ResourceManager under epoch %d", self.epoch)
        resource_manager = ResourceManager(
            self._rpc,
            self.epoch,
            self._configuration.get(HEARTBEAT_INTERVAL) / 1000,
            self._configuration.get(HEARTBEAT_TIMEOUT) / 1000,
            self._clock,
            self._on_fatal,
            dispatcher.is_known_job,
            dispatcher.led_jobs,
            is_spread=self._configuration.get(LOAD_BALANCE_MODE) == "SLOTS",
            running_jobs_max=self._configuration.get(RUNNING_JOBS_MAX),
        )
        self._endpoints.append(resource_manager)
        self._resource_manager = resource_manager
        self._rpc.start(resource_manager)
        resource_manager.start(dispatcher.recovered_turns)
        _log.info("starting Dispatcher under epoch %d", self.epoch)
        self._rpc.start(dispatcher)
        dispatcher.start()
        self._dispatcher = dispatcher
        dispatcher.spawn(self._blobs.sweep(lambda: dispatcher.running_job_ids), "blobs of no job")

    async def cancel_lost_jobs(self) -> None:
        """Before a stop in peace: cancel the jobs that nobody goes on with, so that no staging of theirs stays."""
        if self._dispatcher is not None and not self._places.is_durable:
            await self._dispatcher.cancel_all(CANCEL_S)

    async def stop(self) -> None:
        """Stop them, every one; jobs that run are suspended. The first error is raised."""
        await close_all_async(
            [step for endpoint in self._endpoints for step in (endpoint.stop, partial(self._rpc.stop, endpoint))]
        )

    def _release(self, job_id: JobId) -> None:
        """Have TaskExecutors drop a job that is over; those that register later hear it then."""
        if self._resource_manager is not None:
            self._resource_manager.release_job(job_id)

    def _job_master(self, job_graph: JobGraph, journal: Journal, taken: TakenJob | None, order: int) -> JobMaster:
        return JobMaster(
            job_graph,
            Leadership(self._rpc, self.epoch, self._clock, self._blocking_work, self._is_leading, self._on_fatal),
            self._job_master_settings,
            self._storage.of(job_graph.job_id),
            journal,
            RecoveredJob(taken.events, taken.stored.decision) if taken is not None else None,
            job_turn(job_graph, order),
        )
