"""Fail-over by pipelined regions: which regions run again after a failure, and when.

    an attempt fails, a stored result is lost
        ─► regions_to_restart: its region; producers whose stored results are gone; consumers that read them
        ─► their tasks are cancelled ─► all have ended and the pause is over ─► new attempts, the regions wait for slots

    RegionFailover.begin(subtasks) ─► (regions, seconds) or None: no more restarts ─► is_quiet ─► finish

What is FINISHED stays as it is while its results are there and what it read is what its producer would produce again.
A producer deals its rows out *repeatably* when which row goes to which consumer follows from the row alone, and the
rows from its input alone; else its consumers run again with it, also those that are FINISHED:

    dealt in turn                     SHUFFLE, REBALANCE, RESCALE, nulls spread, heavy keys spread, subpartitions cut
    rows of its own choice            Python functions (they may draw random numbers), limits, first and last values

What follows from such rows is no more repeatable than they are: neither what others of the same region make of them,
nor what a region writes that reads them again.

A BLOCKING result that was dropped because all consumers had finished is produced again when one of them runs again.

Pure: the JobMaster cancels, waits and deploys. Source: Flink's RestartPipelinedRegionFailoverStrategy, which restarts
all consumers; Yuan et al., OSDI 2014, for testing each handler.

Held by: tests/integration/test_damaged_results.py
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from engine.ids import ResultPartitionId
from engine.jobmaster.execution_graph import ExecutionGraph
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex, IntermediateResultPartition
from engine.jobmaster.restart_strategy import RestartStrategy
from engine.jobmaster.scheduler import RegionState, Scheduler, SchedulingRegion

_DEALT_IN_TURN = frozenset({"SHUFFLE", "REBALANCE", "RESCALE"})


def is_repeatable(partition: IntermediateResultPartition) -> bool:
    """Whether another attempt of the producer, given the same rows, gives each consumer the same."""
    partitioner = partition.data_set.partitioner
    is_dealt_in_turn = (
        partitioner.kind in _DEALT_IN_TURN
        or partitioner.spread_nulls
        or (partitioner.heavy is not None and bool(partitioner.heavy.spread))
        or any(edge.job_edge.shares for edge in partition.consumers[:1])
    )
    return not is_dealt_in_turn and all(
        step.operator.traits.is_repeatable for step in partition.producer.job_vertex.chain
    )


def is_available(partition: IntermediateResultPartition) -> bool:
    """Whether a consumer that runs again can read a BLOCKING partition whose producer has finished."""
    return not (partition.is_released or partition.is_damaged or partition.producer.current.is_lost)


def regions_to_restart(scheduler: Scheduler, seeds: Iterable[ExecutionVertex]) -> tuple[SchedulingRegion, ...]:
    """Return the regions that must run again when those of ``seeds`` do, none of which waits to be started."""
    #: chosen regions, and whether their output may differ
    chosen: dict[SchedulingRegion, bool] = {}
    queue: deque[tuple[SchedulingRegion, bool]] = deque((scheduler.region_of(seed), False) for seed in seeds)
    while queue:
        region, reads_other_rows = queue.popleft()
        if region.state is RegionState.WAITING or chosen.get(region, False):
            continue
        differs = reads_other_rows or not _repeats_inside(region)
        if region in chosen and not differs:
            continue
        chosen[region] = differs
        for subtask in region.subtasks:
            queue.extend((producer, False) for producer in _producers_to_restart(scheduler, subtask))
            queue.extend(_consumers_to_restart(scheduler, subtask, differs))
    return tuple(region for region in scheduler.regions if region in chosen)


def _repeats_inside(region: SchedulingRegion) -> bool:
    """Whether the subtasks of a region give each other the same rows at every attempt."""
    return all(
        is_repeatable(partition)
        for subtask in region.subtasks
        for partition in subtask.partitions
        if partition.data_set.result_type.is_pipelined
    )


def _producers_to_restart(scheduler: Scheduler, subtask: ExecutionVertex) -> Iterator[SchedulingRegion]:
    for edges in subtask.inputs:
        for partition in edges.partitions:
            if not partition.data_set.result_type.is_persistent:
                continue
            if partition.producer.current.state is ExecutionState.FINISHED and not is_available(partition):
                yield scheduler.region_of(partition.producer)


def _consumers_to_restart(
    scheduler: Scheduler, subtask: ExecutionVertex, differs: bool
) -> Iterator[tuple[SchedulingRegion, bool]]:
    """Yield regions that read what a subtask writes, with whether they read other rows at their next attempt."""
    for partition in subtask.partitions:
        if not partition.data_set.result_type.is_persistent:
            continue
        has_other_rows = differs or not is_repeatable(partition)
        for edge in partition.consumers:
            if has_other_rows or edge.consumer.current.state is not ExecutionState.FINISHED:
                yield scheduler.region_of(edge.consumer), has_other_rows


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
        #: regions that run again once their tasks have ended
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

    def adopt(self, subtasks: Iterable[ExecutionVertex], now_s: float, time_ms: int = -1) -> None:
        """Repeat a restart of an earlier leader: these subtasks, which have ended, get new attempts."""
        self._strategy.next_delay_s(now_s)
        self.restart_count += 1
        self._regions = {id(region): region for region in map(self._scheduler.region_of, subtasks)}
        self.finish(time_ms)

    @property
    def subtasks(self) -> list[ExecutionVertex]:
        """Subtasks of the regions that are about to run again."""
        return [subtask for region in self._regions.values() for subtask in region.subtasks]

    @property
    def is_quiet(self) -> bool:
        """Whether all their attempts have ended."""
        return all(subtask.current.state.is_terminal for subtask in self.subtasks)

    def finish(self, time_ms: int = -1) -> dict[str, tuple[ResultPartitionId, ...]]:
        """Begin new attempts, which wait for slots; return the stored results of the old ones by TaskExecutor.

        ``time_ms``: now, since 1970; -1: not known.
        """
        stale: dict[str, list[ResultPartitionId]] = defaultdict(list)
        for region in self._regions.values():
            for subtask in region.subtasks:
                last = subtask.current
                if last.state is ExecutionState.FINISHED and last.slot is not None and not last.is_lost:
                    stale[last.slot.address].extend(partition.id for partition in subtask.partitions)
                self._graph.restart(subtask, time_ms)
            self._scheduler.restart(region)
        self._regions.clear()
        return {address: tuple(ids) for address, ids in stale.items() if ids}
