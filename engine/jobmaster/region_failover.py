"""Fail-over by pipelined regions: which regions run again after a failure, and when.

    an attempt fails, a stored result is lost
        ─► regions_to_restart: its region; producers whose stored results are gone; consumers that read them
        ─► their tasks are cancelled ─► all have ended and the pause is over ─► new attempts, the regions wait for slots

    RegionFailover.begin(subtasks) ─► (regions, seconds) or None: no more restarts ─► is_quiet ─► finish

What is FINISHED stays as it is while its results are there and what it read is what its producer would produce again.
A producer deals its rows out *repeatably* when which row goes to which consumer follows from the row alone, and the
rows from its input alone; else its consumers run again with it, also those that are FINISHED:

    dealt in turn                     SHUFFLE, REBALANCE, RESCALE, nulls spread, heavy keys spread
    rows of its own choice            Python functions (they may draw random numbers), limits

A BLOCKING result that was dropped because all consumers had finished is produced again when one of them runs again.

Pure: the JobMaster cancels, waits and deploys. Source: Flink's RestartPipelinedRegionFailoverStrategy, which restarts
all consumers; Yuan et al., OSDI 2014, for testing each handler.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from engine.graph.operator_descriptor import LimitOperator, PythonOperator
from engine.ids import ResultPartitionId
from engine.jobmaster.execution_graph import ExecutionGraph
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex, IntermediateResultPartition
from engine.jobmaster.restart_strategy import RestartStrategy
from engine.jobmaster.scheduler import RegionState, Scheduler, SchedulingRegion

_DEALT_IN_TURN = frozenset({"SHUFFLE", "REBALANCE", "RESCALE"})


def is_repeatable(partition: IntermediateResultPartition) -> bool:
    """Whether another attempt of the producer gives each consumer the same rows."""
    partitioner = partition.data_set.partitioner
    is_dealt_in_turn = (
        partitioner.kind in _DEALT_IN_TURN
        or partitioner.spread_nulls
        or (partitioner.heavy is not None and bool(partitioner.heavy.spread))
    )
    chain = partition.producer.job_vertex.chain
    return not is_dealt_in_turn and not any(isinstance(step.operator, PythonOperator | LimitOperator) for step in chain)


def is_available(partition: IntermediateResultPartition) -> bool:
    """Whether a consumer that runs again can read a BLOCKING partition whose producer has finished."""
    return not (partition.is_released or partition.is_damaged or partition.producer.current.is_lost)


def regions_to_restart(scheduler: Scheduler, seeds: Iterable[ExecutionVertex]) -> tuple[SchedulingRegion, ...]:
    """Return the regions that must run again when those of ``seeds`` do, none of which waits to be started."""
    chosen: dict[int, SchedulingRegion] = {}
    queue = deque(scheduler.region_of(seed) for seed in seeds)
    while queue:
        region = queue.popleft()
        if id(region) in chosen or region.state is RegionState.WAITING:
            continue
        chosen[id(region)] = region
        for subtask in region.subtasks:
            queue.extend(_producers_to_restart(scheduler, subtask))
            queue.extend(_consumers_to_restart(scheduler, subtask))
    return tuple(region for region in scheduler.regions if id(region) in chosen)


def _producers_to_restart(scheduler: Scheduler, subtask: ExecutionVertex) -> Iterable[SchedulingRegion]:
    for edges in subtask.inputs:
        for edge in edges:
            partition = edge.partition
            if partition.data_set.result_type.is_pipelined:
                continue
            if partition.producer.current.state is ExecutionState.FINISHED and not is_available(partition):
                yield scheduler.region_of(partition.producer)


def _consumers_to_restart(scheduler: Scheduler, subtask: ExecutionVertex) -> Iterable[SchedulingRegion]:
    for partition in subtask.partitions:
        if partition.data_set.result_type.is_pipelined:
            continue
        for edge in partition.consumers:
            if edge.consumer.current.state is ExecutionState.FINISHED and is_repeatable(partition):
                continue
            yield scheduler.region_of(edge.consumer)


class RegionFailover:
    """Restarts of one job.

    Args:
        graph, scheduler: of the job.
        strategy: decides whether and when.
    """

    def __init__(self, graph: ExecutionGraph, scheduler: Scheduler, strategy: RestartStrategy) -> None:
        self._graph = graph
        self._scheduler = scheduler
        self._strategy = strategy
        #: regions whose tasks are ending, to run again
        self._regions: dict[int, SchedulingRegion] = {}
        self.restart_count = 0

    def covers(self, vertex: ExecutionVertex) -> bool:
        """Whether a subtask's region is about to run again."""
        return id(self._scheduler.region_of(vertex)) in self._regions

    def begin(self, seeds: Iterable[ExecutionVertex], now_s: float) -> float | None:
        """Choose the regions that must run again; return the pause in seconds, None when there is no restart.

        While others are ending already, those of ``seeds`` join them: it is one restart, and the pause is 0.
        """
        pause_s: float | None = 0.0
        if not self._regions:
            pause_s = self._strategy.next_delay_s(now_s)
            if pause_s is None:
                return None
            self.restart_count += 1
        for region in regions_to_restart(self._scheduler, seeds):
            self._regions[id(region)] = region
            for subtask in region.subtasks:
                self._graph.withdraw_output(subtask)
        return pause_s

    @property
    def subtasks(self) -> list[ExecutionVertex]:
        """Subtasks of the regions that are about to run again."""
        return [subtask for region in self._regions.values() for subtask in region.subtasks]

    @property
    def is_quiet(self) -> bool:
        """Whether all their attempts have ended."""
        return all(subtask.current.state.is_terminal for subtask in self.subtasks)

    def finish(self) -> dict[str, tuple[ResultPartitionId, ...]]:
        """Begin new attempts, which wait for slots; return the stored results of the old ones by TaskExecutor."""
        stale: dict[str, list[ResultPartitionId]] = defaultdict(list)
        for region in self._regions.values():
            for subtask in region.subtasks:
                last = subtask.current
                if last.state is ExecutionState.FINISHED and last.slot is not None and not last.is_lost:
                    stale[last.slot.address].extend(partition.id for partition in subtask.partitions)
                self._graph.restart(subtask)
            self._scheduler.restart(region)
        self._regions.clear()
        return {address: tuple(ids) for address, ids in stale.items() if ids}
