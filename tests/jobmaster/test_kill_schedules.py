"""Random losses while a job runs: at its end every consumer has read the same version of what each producer wrote.

The data is a model: what an attempt writes is named by what it read, and by its own number where another attempt would
write something else. Whoever reads what is gone, or a mixture of versions, fails the test.
"""

import random

import pytest

from engine.clock import ManualClock
from engine.graph.deployment import TaskReport
from engine.ids import AllocationId, ResourceId
from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.partition_tracker import partitions_to_release
from engine.jobmaster.region_failover import RegionFailover, is_available, is_repeatable, regions_to_restart
from engine.jobmaster.restart_strategy import FixedDelayRestart
from engine.jobmaster.scheduler import Scheduler
from engine.jobmaster.slot_pool import AllocatedSlot, SlotPool
from tests.jobmaster.job_graphs import BLOCKING, PIPELINED, Edge, job_graph
from tests.property.matrix import IS_TORTURE

CLOCK = ManualClock()
RUN = (ExecutionState.DEPLOYING, ExecutionState.INITIALIZING, ExecutionState.RUNNING)
SLOTS = 4


def random_job(chance):
    """Return 2 to 6 vertices, each reading one or two of those before it."""
    count = chance.randint(2, 6)
    edges = []
    for consumer in range(1, count):
        producers = chance.sample(range(consumer), min(consumer, chance.randint(1, 2)))
        edges += [
            Edge(producer, consumer, chance.choice(["HASH", "REBALANCE", "BROADCAST"]), kind, input_index)
            for input_index, producer in enumerate(producers)
            for kind in [BLOCKING if len(producers) > 1 else chance.choice([BLOCKING, BLOCKING, PIPELINED])]
        ]
    return job_graph([chance.randint(1, 3) for _ in range(count)], edges)


def _producers(vertex):
    return [partition.producer for partitions in vertex.pipelined_inputs for partition in partitions]


class Job:
    """A job, its slots on three TaskExecutors, and what its attempts have read."""

    def __init__(self, chance):
        self.chance = chance
        self.graph = build_execution_graph(random_job(chance))
        self.scheduler = Scheduler(self.graph)
        self.failover = RegionFailover(self.graph, self.scheduler, FixedDelayRestart(1000, 0.0))
        self.pool = SlotPool()
        self.resources = [ResourceId.random() for _ in range(3)]
        for resource in self.resources:
            self.add_slots(resource)
        self.read = {}  # attempt -> {(producer, output): what was read}

    def add_slots(self, resource):
        for _ in range(SLOTS):
            request = self.pool.open_request(1)
            self.pool.offer(request, AllocatedSlot(AllocationId.random(), resource, str(resource), "", 10))
            self.pool.close_request(request)

    def written(self, partition):
        """Name what the current attempt of a producer writes."""
        attempt = partition.producer.current.attempt
        read = tuple(sorted(self.read.get(attempt, {}).items()))
        return (attempt.vertex.index, attempt.subtask_index, read, -1 if is_repeatable(partition) else attempt)

    def start(self):
        for region in self.scheduler.start_regions(self.pool, CLOCK):
            for subtask in region.subtasks:
                for state in RUN:
                    subtask.current.transition(state, CLOCK)

    def finish_one(self):
        """Let one subtask read all and end; PIPELINED producers first."""
        ready = [
            vertex
            for vertex in self.graph
            if vertex.current.state is ExecutionState.RUNNING
            and all(producer.current.state is ExecutionState.FINISHED for producer in _producers(vertex))
        ]
        vertex = self.chance.choice(ready)
        partitions = [edge.partition for edges in vertex.inputs for edge in edges]
        for partition in partitions:
            assert partition.producer.current.state is ExecutionState.FINISHED
            assert partition.data_set.result_type is PIPELINED or is_available(partition)
        self.read[vertex.current.attempt] = {
            (partition.producer.id, partition.data_set.id.output_index): self.written(partition)
            for partition in partitions
        }
        assert self.graph.update(TaskReport(vertex.current.attempt, "FINISHED"), CLOCK) is vertex
        self.scheduler.subtask_ended(vertex, self.pool)
        partitions_to_release(vertex)

    def lose(self):
        """Lose a TaskExecutor, or find that a stored partition is damaged; another TaskExecutor comes."""
        if self.chance.random() < 0.5:
            index = self.chance.randrange(3)
            lost, self.resources[index] = self.resources[index], ResourceId.random()
            self.pool.remove_task_executor(lost)
            hurt = self.graph.lose_task_executor(lost, CLOCK)
            for vertex in hurt:
                self.scheduler.subtask_ended(vertex, self.pool)
            self.add_slots(self.resources[index])
        else:
            reading = [
                (vertex, edge.partition)
                for vertex in self.graph
                if vertex.current.state is ExecutionState.RUNNING
                for edges in vertex.inputs
                for edge in edges
                if edge.partition.data_set.result_type is BLOCKING
            ]
            if not reading:
                return
            reader, partition = self.chance.choice(reading)
            self.graph.note_damage(partition.id)
            self.graph.update(TaskReport(reader.current.attempt, "FAILED"), CLOCK)
            self.scheduler.subtask_ended(reader, self.pool)
            hurt = [reader]
        if hurt:
            self.restart(hurt)

    def restart(self, hurt):
        attempts = {vertex.id: vertex.current.attempt.attempt_number for vertex in self.graph}
        chosen = {v.id for region in regions_to_restart(self.scheduler, hurt) for v in region.subtasks}
        assert self.failover.begin(hurt, 0.0) == 0.0
        for vertex in self.failover.subtasks:
            if not vertex.current.state.is_terminal:
                vertex.current.transition(ExecutionState.CANCELING, CLOCK)
                vertex.current.transition(ExecutionState.CANCELED, CLOCK)
                self.scheduler.subtask_ended(vertex, self.pool)
        assert self.failover.is_quiet
        self.failover.finish()
        now = {vertex.id: vertex.current.attempt.attempt_number for vertex in self.graph}
        assert now == {each: number + (each in chosen) for each, number in attempts.items()}


@pytest.mark.parametrize("seed", range(5000 if IS_TORTURE else 150))
def test_nobody_reads_what_is_gone_or_a_mixture_of_attempts(seed):
    chance = random.Random(seed)
    job = Job(chance)
    losses = chance.randint(1, 6)
    while not job.graph.is_finished:
        job.start()
        if losses and chance.random() < 0.15:
            losses -= 1
            job.lose()
        else:
            job.finish_one()
    versions = {}
    for vertex in job.graph:
        for source, content in job.read[vertex.current.attempt].items():
            assert versions.setdefault(source, content) == content, f"{vertex.name} has read another version"
    assert all(len(vertex.prior) == vertex.current.attempt.attempt_number for vertex in job.graph)
