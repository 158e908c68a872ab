"""The components of a MiniCluster, started under an embedded leader and stopped in reverse.

    start ─► election ─ grants epoch ─► Dispatcher, ResourceManager lead ─► leader published ─► TaskExecutor registers
    stop  ─► JobMasters and Dispatcher, TaskExecutor (its tasks end), ResourceManager, election, resources

One election stands for all components, as one latch does in a real JobManager. Everything runs on the loop.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

import msgspec

from engine.clock import Clock
from engine.closing import close_all_async
from engine.dispatcher.dispatcher import DISPATCHER_ADDRESS
from engine.dispatcher.leading_components import LeadingComponents, LeadingSettings, LeadingStores
from engine.errors import EngineError
from engine.ids import ResourceId
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.memory.process_memory import ProcessMemory
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS, ResourceManagerSettings
from engine.rpc.gateway import Gateway, RpcService
from engine.rpc.leadership import Leadership
from engine.taskexecutor.task_executor import TaskExecutor, TaskResources
from engine.taskexecutor.task_executor_settings import TaskExecutorSettings
from ha.information import LeaderInformation
from ha.services import create_ha_services


class ClusterResources(TaskResources, Protocol):
    """TaskResources as their owner sees them."""

    @property
    def sizes(self) -> ProcessMemory:
        """The sizes into which the memory of the process is divided."""
        ...

    def prepare(self) -> None:
        """Make ready for jobs after a rest; no task runs."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class ClusterSettings(msgspec.Struct, frozen=True):
    """The settings of the components. Times in seconds."""

    slot_count: int
    heartbeat_interval_s: float
    heartbeat_timeout_s: float
    cancellation_timeout_s: float
    job_master: JobMasterSettings
    #: limit of jobs with slots at one time; 0: none
    running_jobs_max: int = 0


class ClusterComponents:
    """Dispatcher, ResourceManager and one TaskExecutor; a LeaderContender."""

    def __init__(
        self,
        rpc: RpcService,
        resource_id: ResourceId,
        resources: ClusterResources,
        settings: ClusterSettings,
        clock: Clock,
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        self.resources = resources
        self._rpc = rpc
        self._settings = settings
        self._clock = clock
        self._on_fatal = on_fatal
        self._blocking_work = ThreadPoolExecutor(max_workers=4, thread_name_prefix="drey-blocking")
        self.task_executor = TaskExecutor(
            resource_id,
            rpc,
            TaskExecutorSettings(
                slot_count=settings.slot_count,
                pages=resources.sizes.pages,
                spare_pages=resources.sizes.spare_pages,
                heartbeat_interval_s=settings.heartbeat_interval_s,
                heartbeat_timeout_s=settings.heartbeat_timeout_s,
                cancellation_timeout_s=settings.cancellation_timeout_s,
            ),
            resources,
            clock,
            self._blocking_work,
            on_fatal,
        )
        services = create_ha_services("embedded")
        self._election = services.election()
        self._retrieval = services.retrieval()
        self._leader: LeaderInformation | None = None
        self._components: LeadingComponents | None = None
        #: task in which the components become leaders
        self._leading: asyncio.Task[None] | None = None

    @property
    def dispatcher(self) -> Gateway:
        """The leading Dispatcher; raises EngineError when none leads."""
        if self._leader is None:
            raise EngineError("no Dispatcher leads")
        return self._rpc.connect(self._leader.address, self._leader.epoch)

    async def start(self) -> None:
        """Start the TaskExecutor, enter the election, and register once there is a leader."""
        self._rpc.start(self.task_executor)
        self.task_executor.start()
        self._retrieval.start(self)
        self._election.start(self)
        assert self._leading is not None, "the embedded election grants at once"
        await self._leading
        assert self._leader is not None, "who leads is told at once"
        await self.task_executor.connect(RESOURCE_MANAGER_ADDRESS, self._leader.epoch)

    async def stop(self) -> None:
        """Stop everything in reverse; every step runs, the first error is raised."""
        components = self._components
        await close_all_async(
            [
                *([components.stop_dispatcher] if components is not None else []),
                self.task_executor.stop,
                partial(self._rpc.stop, self.task_executor),
                *([components.stop] if components is not None else []),
                self._retrieval.close,
                self._election.close,
                self._blocking_work.shutdown,
                self.resources.close,
            ]
        )

    # ---- LeaderContender, LeaderRetrievalListener ----

    def grant_leadership(self, epoch: int, session: uuid.UUID) -> None:
        """Start the leading components under the epoch and say where they are."""
        self._leading = asyncio.get_running_loop().create_task(self._lead(epoch, session))

    async def _lead(self, epoch: int, session: uuid.UUID) -> None:
        settings = self._settings
        leadership = Leadership(
            self._rpc,
            epoch,
            self._clock,
            self._blocking_work,
            lambda: self._election.has_leadership(epoch),
            self._on_fatal,
        )
        resource_manager = ResourceManagerSettings(
            settings.heartbeat_interval_s, settings.heartbeat_timeout_s, running_jobs_max=settings.running_jobs_max
        )
        self._components = LeadingComponents(
            leadership,
            LeadingSettings(settings.job_master, resource_manager),
            LeadingStores(),
        )
        await self._components.start()
        self._election.confirm(LeaderInformation(epoch, session, DISPATCHER_ADDRESS))

    def revoke_leadership(self) -> None:
        """Lead no more; ``stop`` has ended the components."""
        self._leader = None

    def handle_error(self, error: Exception) -> None:
        """Give the cluster up."""
        self._on_fatal(error)

    def notify_leader(self, information: LeaderInformation | None) -> None:
        """Record the leader."""
        self._leader = information
