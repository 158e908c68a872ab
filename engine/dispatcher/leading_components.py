"""LeadingComponents: what a process runs while it leads: Dispatcher, ResourceManager, and a JobMaster for each job.

    LeadingComponents(leadership, settings, stores) ─► await start() ─► (messages come) ─► await stop()

The one composition of these parts: of a JobManager's process and of the embedded cluster. ``start`` recovers what the
leader before has stored, and returns when all components can be reached: only then may other processes learn of the
leader. It may be cancelled. The next leadership gets new components.

Source: Flink's DispatcherResourceManagerComponent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from engine.closing import close_all_async
from engine.dispatcher.dispatcher import Dispatcher
from engine.dispatcher.job_handle import TakenJob
from engine.dispatcher.job_keeper import JobKeeper
from engine.dispatcher.job_store import JobStore
from engine.dispatcher.passing_storage import PassingStorage
from engine.gateways.messages import JobOverview
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.jobmaster.job_facts import RecoveredJob
from engine.jobmaster.job_journal import Journal
from engine.jobmaster.job_master import JobMaster
from engine.jobmaster.job_master_settings import JobMasterSettings, job_turn
from engine.resourcemanager.resource_manager import ResourceManager, ResourceManagerSettings
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.leadership import Leadership

if TYPE_CHECKING:
    from engine.dispatcher.job_storage import StoredJobs

_log = logging.getLogger(__name__)


class LeadingSettings(msgspec.Struct, frozen=True):
    """The settings of the components."""

    job_master: JobMasterSettings
    resource_manager: ResourceManagerSettings


class LeadingStores(msgspec.Struct, frozen=True):
    """The stores in which the components keep jobs."""

    #: store of jobs; None: jobs end with this process
    jobs: StoredJobs | None = None
    #: factory of the store of ended jobs; called in a thread
    ended: Callable[[], JobStore] = JobStore
    #: callback for each job that has ended
    on_ended: Callable[[JobOverview], None] = lambda job: None
    #: callback that removes the files of an ended job
    remove_blobs: Callable[[JobId], Awaitable[None]] | None = None
    #: number of tries to open a storage; None: unlimited
    open_tries: int | None = None


class LeadingComponents:
    """Components of one leadership."""

    def __init__(self, leadership: Leadership, settings: LeadingSettings, stores: LeadingStores) -> None:
        self.epoch = leadership.epoch
        self._leadership = leadership
        self._settings = settings
        self._stores = stores
        #: endpoints that are reachable, or are about to be
        self._endpoints: list[RpcEndpoint] = []
        self._resource_manager: ResourceManager | None = None
        #: Dispatcher, once it is reachable
        self.dispatcher: Dispatcher | None = None

    async def start(self) -> Dispatcher:
        """Recover jobs, then make everything reachable; FencedError when this process leads no more."""
        rpc, _, clock, blocking_work, _, on_fatal = self._leadership
        stores, settings = self._stores, self._settings
        ended = await asyncio.get_running_loop().run_in_executor(blocking_work, stores.ended)
        storage = JobKeeper(ended, stores.jobs, blocking_work, stores.remove_blobs, stores.open_tries)
        dispatcher = Dispatcher(rpc, self.epoch, self._job_master, on_fatal, storage, self._release, stores.on_ended)
        self._endpoints.append(dispatcher)
        await dispatcher.recover()
        _log.info("starting ResourceManager under epoch %d", self.epoch)
        self._resource_manager = ResourceManager(
            rpc,
            self.epoch,
            settings.resource_manager,
            clock,
            on_fatal,
            dispatcher.is_known_job,
            dispatcher.led_jobs,
        )
        self._endpoints.append(self._resource_manager)
        rpc.start(self._resource_manager)
        self._resource_manager.start(dispatcher.recovered_turns)
        _log.info("starting Dispatcher under epoch %d", self.epoch)
        rpc.start(dispatcher)
        dispatcher.start()
        self.dispatcher = dispatcher
        return dispatcher

    async def stop_dispatcher(self) -> None:
        """Suspend the jobs that run, and take no others."""
        await self._stop(self._endpoints[:1])

    async def stop(self) -> None:
        """Stop the components, every one; jobs that run are suspended. The first error is raised."""
        await self._stop(self._endpoints)

    async def _stop(self, endpoints: list[RpcEndpoint]) -> None:
        steps: list[Callable[[], Awaitable[None] | None]] = []
        for endpoint in endpoints:
            steps += (endpoint.stop, partial(self._leadership.rpc.stop, endpoint))
        await close_all_async(steps)

    def _release(self, job_id: JobId) -> None:
        """Tell TaskExecutors to drop an ended job; those that register later are told then."""
        if self._resource_manager is not None:
            self._resource_manager.release_job(job_id)

    def _job_master(self, job_graph: JobGraph, journal: Journal, taken: TakenJob | None, order: int) -> JobMaster:
        return JobMaster(
            job_graph,
            self._leadership,
            self._settings.job_master,
            PassingStorage() if self._stores.jobs is None else self._stores.jobs.of(job_graph.job_id),
            journal,
            RecoveredJob(taken.events, taken.stored.decision) if taken is not None else None,
            job_turn(job_graph, order),
        )
