"""Leaders, a journal that loses its end, and simulated TaskExecutors that come and go, in virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from engine.errors import EngineError
from engine.formats.output_check import sinks_of
from engine.gateways.messages import CancelJob
from engine.graph.deployment import FailureInfo, Staging
from engine.ids import ExecutionAttemptId
from engine.jobmaster.job_facts import RecoveredJob
from engine.jobmaster.job_master import JobMaster
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.jobmaster.restart_strategy import FixedDelayRestart
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS, ResourceManager, ResourceManagerSettings
from engine.rpc.leadership import Leadership
from engine.rpc.local_gateway import LocalRpcService
from tests.jobmaster.folder_storage import FolderStorage
from tests.jobmaster.simulated_executors import SimExecutor, found_partition
from tests.jobmaster.virtual_time import Inline, VirtualClock

_DEALT_IN_TURN = {"SHUFFLE", "REBALANCE", "RESCALE"}


class SimJournal:
    """Events, durable a while after they were written."""

    def __init__(self, chance, events=(), delay_s=0.0):
        self.chance, self.delay_s = chance, delay_s
        self.events = list(events)
        self.durable = len(self.events)

    @property
    def is_durable(self):
        return self.durable == len(self.events)

    def append(self, event):
        self.events.append(event)
        count = len(self.events)
        if self.delay_s:
            asyncio.get_running_loop().call_later(self.chance.uniform(0, self.delay_s), self._written, count)
        else:
            self.durable = count

    def _written(self, count):
        self.durable = max(self.durable, count)

    async def flush(self):
        count = len(self.events)
        while self.durable < count:
            await asyncio.sleep(self.delay_s / 4)

    async def close(self):
        pass


class SlowRpc(LocalRpcService):
    """Calls and answers take their time; calls to one address arrive in their order, some endpoints do not answer."""

    def __init__(self, chance, delay_s):
        super().__init__()
        self.chance, self.delay_s = chance, delay_s
        self.arrivals = {}
        #: address -> when it answers again
        self.silent = {}

    async def deliver(self, address, epoch, message):
        loop = asyncio.get_running_loop()
        arrival_s = max(
            self.arrivals.get(address, 0.0),
            self.silent.get(address, 0.0),
            loop.time() + self.chance.uniform(0.0, self.delay_s),
        )
        self.arrivals[address] = arrival_s
        if arrival_s > loop.time():
            await asyncio.sleep(arrival_s - loop.time())
        reply = await super().deliver(address, epoch, message)
        if self.delay_s:
            await asyncio.sleep(self.chance.uniform(0.0, self.delay_s))
        return reply


class SimCommit:
    """Outputs that lie nowhere."""

    #: recorded by another thread, as where results are files
    records_at_once = False
    is_at_once = False

    def __init__(self, graph):
        self._staging = {sink.sink_index: Staging(f"staging of {sink.sink_index}") for sink in sinks_of(graph)}

    def prepare(self):
        return self._staging

    def adopt(self, staging):
        assert staging == self._staging

    def revise(self, job_graph):
        pass

    def commit(self, staged):
        return ()

    def record(self, end):
        pass

    def abort(self):
        pass


class SimWorld:
    """A cluster that runs one job under leader after leader."""

    def __init__(self, loop, chance, slots, journal_delay_s=0.0, failure_rate=0.0, delay_s=0.0, bug_rate=0.0):
        self.chance, self.clock, self.rpc = chance, VirtualClock(loop), SlowRpc(chance, delay_s)
        self.journal_delay_s, self.failure_rate, self.bug_rate = journal_delay_s, failure_rate, bug_rate
        self.epoch, self.faults = 0, []
        self.submitted, self.read = [], {}
        self.executors = []
        self.job_master = self.resource_manager = None
        for count in slots:
            self.add_executor(count)

    # ---- what the simulated TaskExecutors ask ----

    async def pause(self):
        await asyncio.sleep(self.chance.expovariate(2.0))

    def failure_of(self, descriptor):
        """Return how an attempt fails, or None."""
        if self.chance.random() < self.bug_rate:
            return FailureInfo("ValueError", "the user's own")
        if self.chance.random() < self.failure_rate:
            return FailureInfo("ResourceError", "a disk", retryable=True)
        return None

    def is_repeatable(self, partition):
        # where nulls are spread, rows of a skewed subpartition may be, too
        return partition.partitioner.kind not in _DEALT_IN_TURN and not partition.partitioner.spread_nulls

    def sizes_of(self, partition):
        count = partition.subpartition_count
        # of some results one subpartition is large, whoever produces it
        heavy = partition.id.data_set.producer.index % (count + 2)
        return [self.chance.randint(0, 300) * (40 if index == heavy else 1) for index in range(count)]

    def find(self, reader, channel, is_pipelined):
        return found_partition(self, reader, channel, is_pipelined)

    # ---- what happens ----

    def add_executor(self, slot_count):
        executor = SimExecutor(self, slot_count)
        self.executors.append(executor)
        self.rpc.start(executor)
        return executor

    async def replace_executor(self):
        """Have a TaskExecutor die and another one come."""
        dead = self.executors.pop(self.chance.randrange(len(self.executors)))
        self.rpc.stop(dead)
        await dead.stop()
        dead.partitions.clear()
        new = self.add_executor(dead.slot_count)
        if self.resource_manager is not None:
            new.spawn(new.follow(self.epoch), "follow")

    async def silence_executor(self):
        """Have a TaskExecutor not answer for a while, or for so long that it counts as lost."""
        silent = self.chance.choice(self.executors)
        self.rpc.silent[silent.address] = self.clock.monotonic_s() + self.chance.choice([1.0, 8.0, 15.0, 40.0])

    async def lose_partition(self):
        """Have a finished result vanish from its disk."""
        held = [(each, key) for each in self.executors for key in each.partitions if key.producer not in each.tasks]
        if held:
            executor, key = self.chance.choice(held)
            del executor.partitions[key]

    @property
    def troubles(self):
        """Return what may happen to TaskExecutors."""
        troubles = [self.replace_executor, self.lose_partition]
        return [*troubles, self.silence_executor] if self.rpc.delay_s else troubles

    async def cancel(self, job_id):
        """Ask for the end of the job; return whether that was acknowledged."""
        try:
            await self.rpc.connect(self.job_master.address, self.epoch).ask(CancelJob(job_id))
        except EngineError:
            return False
        return True

    async def lead(self, graph, events=None):
        self.epoch += 1
        for executor in self.executors:
            executor.check_epoch(self.epoch)
        epoch, fault = self.epoch, self.faults.append
        self.resource_manager = ResourceManager(self.rpc, epoch, ResourceManagerSettings(5.0, 20.0), self.clock, fault)
        settings = JobMasterSettings(
            1e6,
            5.0,
            20.0,
            RESOURCE_MANAGER_ADDRESS,
            restart_strategy=lambda _: FixedDelayRestart(10_000, 0.01),
            reattach_timeout_s=30.0,
        )
        self.journal = SimJournal(self.chance, events or (), self.journal_delay_s)
        leadership = Leadership(self.rpc, epoch, self.clock, Inline(), lambda: self.epoch == epoch, fault)
        self.job_master = JobMaster(
            graph,
            leadership,
            settings,
            FolderStorage(Path("nowhere"), graph.job_id),
            self.journal,
            None if events is None else RecoveredJob(tuple(events)),
        )
        self.job_master._outputs.commit = SimCommit(graph)
        self.rpc.start(self.resource_manager)
        self.resource_manager.start()
        self.rpc.start(self.job_master)
        for executor in self.executors:
            executor.spawn(executor.follow(epoch), "follow")
        self.job_master.start()

    async def depose(self):
        """Have the leader die; return the events that are durable."""
        kept = self.journal.events[: self.journal.durable]
        for endpoint in (self.job_master, self.resource_manager):
            self.rpc.stop(endpoint)
            await endpoint.stop()
        self.resource_manager = None
        return kept

    async def close(self):
        if self.job_master is not None:
            await self.depose()
        for executor in self.executors:
            await executor.stop()

    # ---- how it came out ----

    def attempts(self):
        """Return the attempts that were ever begun, by subtask."""
        begun: dict[tuple[int, int], set[ExecutionAttemptId]] = {}
        for descriptor in self.submitted:
            attempt = descriptor.attempt
            begun.setdefault((attempt.vertex.index, attempt.subtask_index), set()).add(attempt)
        return begun

    def check(self, statuses=("FINISHED",)):
        """The job has ended so; when it has finished, every reader of a result has read the same of it."""
        job_master = self.job_master
        outcome = job_master.outcome.result()
        assert outcome.status in statuses, (outcome.status, outcome.failure)
        if outcome.status != "FINISHED":
            return
        job_master.job_graph.validate()
        versions = {}
        for vertex in job_master.state.facts.graph:
            attempt = vertex.current.attempt
            assert vertex.current.state.value == "FINISHED" and attempt in self.read, vertex.name
            assert [each.attempt.attempt_number for each in vertex.prior] == list(range(len(vertex.prior)))
            sources = {
                (edge.partition.producer.job_vertex.id.index, edge.partition.producer.subtask_index)
                for edges in vertex.inputs
                for edge in edges
                if edge.channels
            }
            assert {source[:2] for source in self.read[attempt]} == sources, vertex.name
            for source, content in self.read[attempt].items():
                assert versions.setdefault(source, content) == content, f"{vertex.name} has read another version"
