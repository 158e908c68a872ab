"""The processes of a model cluster: JobManagers with all that leads in them, TaskExecutors, and clients of jobs.

Of a JobManager only the servers are missing: its contender, election, Dispatcher, ResourceManager, JobMasters, storage
and journals are the real ones. A TaskExecutor is a simulated one with the real registration.
"""

from __future__ import annotations

import asyncio

from engine.clock import SystemClock
from engine.config.loader import configuration_from_texts
from engine.dispatcher.dispatcher import DISPATCHER_ADDRESS
from engine.dispatcher.garbage_timer import GarbageTimer
from engine.dispatcher.job_storage import StoredJobs
from engine.dispatcher.leading_components import LeadingComponents, LeadingSettings, LeadingStores
from engine.entrypoint.leader_endpoint import ElectedLeaderFinder, LeaderEndpoint
from engine.entrypoint.leading_stores import job_store
from engine.entrypoint.process_contender import ProcessContender
from engine.errors import EngineError, JobNotFoundError
from engine.gateways.leader import LEADER_ADDRESS
from engine.gateways.messages import (
    CancelJob,
    RequestJobOutcome,
    RequestLeader,
    StayConnected,
    SubmitJob,
)
from engine.graph.deployment import FailureInfo
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.jobmaster.restart_strategy import FixedDelayRestart
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS, ResourceManagerSettings
from engine.rpc.leadership import Leadership
from engine.taskexecutor.registration import Registration, RegistrationSettings
from ha.zookeeper_services import ZooKeeperHaServices
from ha.zookeeper_settings import ZooKeeperSettings
from tests.cluster_model.virtual_threads import POOL, Process
from tests.jobmaster.simulated_executors import SimExecutor, found_partition

STORE = "model://cluster"
SESSION_S = 6.0
HEARTBEAT_S, SILENCE_S = 5.0, 20.0
#: time between two looks for garbage, and how old it must be
GARBAGE_S, GARBAGE_AGE_S = 30.0, 120.0
#: time without a leader that a TaskExecutor bears where nothing may be done twice
PATIENCE_S = 300.0
#: a process without a quorum for so long gives up
CONNECTION_S = 30.0


class Member(Process):
    """A process of the cluster, at a host."""

    def __init__(self, world, host):
        super().__init__(world.loop, host)
        self.world, self.host = world, host
        self.rpc = world.network.rpc(self, host)
        self.services = None

    def open_services(self):
        self.services = ZooKeeperHaServices(
            ZooKeeperSettings("model:1", b"secret", session_timeout_s=SESSION_S, connection_timeout_s=CONNECTION_S)
        )
        return self.services

    @property
    def client(self):
        """The client of its session."""
        return self.services.session._client

    def fatal(self, error):
        """Give up: the process ends, and its supervisor starts it again."""
        self.world.note_fatal(self, error)


class JobManagerModel(Member):
    """One JobManager."""

    def __init__(self, world, host):
        super().__init__(world, host)
        self.election = self.retrieval = self.contender = None
        self.begin(self._begin)

    def _begin(self):
        endpoint = LeaderEndpoint()
        self.contender = ProcessContender(
            endpoint, lambda: self.host, self._components, lambda: None, self.fatal, self._collect_garbage
        )
        self.rpc.start(endpoint)
        services = self.open_services()
        self.retrieval, self.election = services.retrieval(), services.election()
        self.retrieval.start(self.contender)
        self.contender.enter(self.election)

    def _components(self, epoch):
        self.world.check_leaders()
        rpc, election = self.rpc, self.election
        leadership = Leadership(rpc, epoch, SystemClock(), POOL, lambda: election.has_leadership(epoch), self.fatal)
        job_master = JobMasterSettings(
            1e6,
            HEARTBEAT_S,
            SILENCE_S,
            rpc.address_of(RESOURCE_MANAGER_ADDRESS),
            restart_strategy=lambda _: FixedDelayRestart(10_000, 0.01),
            reattach_timeout_s=30.0,
        )
        settings = LeadingSettings(job_master, ResourceManagerSettings(HEARTBEAT_S, SILENCE_S))
        stores = LeadingStores(
            StoredJobs(STORE, self.services.state_store(), epoch, leadership.is_leading),
            lambda: job_store(configuration_from_texts({}), f"{STORE}/history", SystemClock()),
            self.world.note_end,
            open_tries=5,
        )
        return LeadingComponents(leadership, settings, stores)

    def _collect_garbage(self, dispatcher):
        garbage = GarbageTimer(STORE, self.services.state_store(), GARBAGE_S, POOL, SystemClock(), GARBAGE_AGE_S)
        dispatcher.spawn(garbage.run(), "garbage")

    @property
    def job_masters(self):
        components = self.contender.components
        dispatcher = None if components is None else components.dispatcher
        return [] if dispatcher is None else [each.job_master for each in dispatcher._running.values()]

    async def leave(self):
        """End as the real one does when it is told to."""
        self.contender.is_stopping = True
        await asyncio.to_thread(self.election.close)
        await asyncio.to_thread(self.retrieval.close)
        await self.contender.leave()


class ExecutorModel(SimExecutor):
    """A simulated TaskExecutor that the real registration keeps registered."""

    async def connect(self, address, epoch):
        self.check_epoch(epoch)
        is_new = epoch != self.registered_epoch
        self.resource_manager_address = address
        await self.register()
        self.registered_epoch = epoch
        if is_new:
            self.begin_to_follow(epoch)

    async def stay_connected(self):
        resource_manager = self.world.rpc.connect(self.resource_manager_address, self._fence.epoch)
        await resource_manager.ask(StayConnected(self.resource_id), HEARTBEAT_S + SILENCE_S)


class TaskManagerModel(Member):
    """The process of one TaskExecutor."""

    def __init__(self, world, host, slot_count):
        super().__init__(world, host)
        self.slot_count = slot_count
        self.executor = None
        self.clock, self.faults, self.chance = SystemClock(), world.faults, world.chance
        self.submitted, self.read = world.submitted, world.read
        self.begin(self._begin)

    def _begin(self):
        self.executor = ExecutorModel(self, self.slot_count)
        self.executor.registered_epoch = 0
        if not self.world.settings.has_losses:
            self.executor.patience_s = PATIENCE_S
        self.rpc.start(self.executor)
        retrieval = self.open_services().retrieval()
        finder = ElectedLeaderFinder(lambda: registration.leader_changed(), retrieval)  # noqa: PLW0108  made below
        registration = Registration(
            self.executor, finder, RegistrationSettings(0.1, 2.0, 1e6), self.clock, lambda leader: None
        )
        retrieval.start(finder)
        self.task(self._registered(registration))

    async def _registered(self, registration):
        try:
            await registration.run()
        except Exception as error:
            self.fatal(error)

    # ---- what the simulated TaskExecutor asks ----

    @property
    def executors(self):
        return self.world.executors

    async def pause(self):
        await asyncio.sleep(self.chance.expovariate(1.0))

    def failure_of(self, descriptor):
        """Return how an attempt fails, or None."""
        if self.chance.random() < self.world.bug_rate:
            return FailureInfo("ValueError", "the user's own")
        if self.chance.random() < self.world.failure_rate:
            return FailureInfo("ResourceError", "a disk", retryable=True)
        return None

    def is_repeatable(self, partition):
        return partition.partitioner.kind not in {"SHUFFLE", "REBALANCE", "RESCALE"}

    def sizes_of(self, partition):
        return [self.chance.randint(0, 300) for _ in range(partition.subpartition_count)]

    def find(self, reader, channel, is_pipelined):
        return found_partition(self, reader, channel, is_pipelined)


class ClientModel(Process):
    """A program that submits one job, and asks until it knows how that has ended."""

    def __init__(self, world, number, graph, cancel_after_s):
        super().__init__(world.loop, f"client {number}")
        self.world, self.graph, self.cancel_after_s = world, graph, cancel_after_s
        self.rpc = world.network.rpc(self, self.name)
        self.is_accepted = self.has_cancelled = False
        self.outcome = None
        self.task(self._submit())

    async def _submit(self):
        job_id = self.graph.job_id
        reply = await self._ask(SubmitJob(self.graph), 10.0)
        assert reply.job_id == job_id
        self.is_accepted = True
        if self.cancel_after_s is not None:
            await asyncio.sleep(self.cancel_after_s)
            await self._ask(CancelJob(job_id), 10.0)
            self.has_cancelled = True
        outcome = await self._ask(RequestJobOutcome(job_id), None)
        while outcome is not None and outcome.status == "SUSPENDED":  # the next leader goes on with it
            outcome = await self._ask(RequestJobOutcome(job_id), None)
        self.outcome = outcome

    async def _ask(self, request, timeout_s):
        """Ask whoever leads, again and again."""
        while True:
            host = self.world.chance.choice(self.world.hosts)
            try:
                leader = await self.rpc.connect(f"{host}/{LEADER_ADDRESS}", 0).ask(RequestLeader(), 5.0)
                dispatcher = self.rpc.connect(f"{leader.address}/{DISPATCHER_ADDRESS}", leader.epoch)
                return await dispatcher.ask(request, timeout_s)
            except JobNotFoundError as error:
                if self.is_accepted:
                    self.world.faults.append(error)
                    return None
            except EngineError:
                pass
            await asyncio.sleep(self.world.chance.expovariate(2.0))
