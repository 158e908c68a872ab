"""JobFacts: what a JobMaster knows of its job; rebuilt from the events of the leaders before it.

    JobFacts.rebuild(job graph, strategy, clock, events)
        Prepared, CancelAsked, ...   as they were
        Scheduled                    the attempts of a region have slots; the region runs
        TaskEnded                    the attempt has ended: report, counters, staged files, slot; unneeded results
                                     any more are released
        Replanned                    the graph is revised as it was then
        Restarted                    the regions wait again, with new attempts; the strategy has counted one more

Afterwards an attempt is CREATED (waits for slots), SCHEDULED (a TaskExecutor may know it, or not), or has ended; what
its TaskExecutor has of it in truth is asked there (``reattachment``). Whatever is cut off at the end of the events only
makes the state an older one, which the job was once in. Events that do not fit their predecessors end them, too.

Pure. Source: Flink's FLIP-383, which replays finished tasks.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

from engine.clock import Clock, Moment, StoppedClock
from engine.commit.decision import Decision
from engine.errors import EngineError
from engine.graph.deployment import PublishedOutput, Staging
from engine.graph.job_graph import JobGraph
from engine.ids import AllocationId, ExecutionAttemptId, ResourceId
from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import Execution, ExecutionVertex
from engine.jobmaster.failure_history import FailureHistory
from engine.jobmaster.job_event import (
    BoundsChosen,
    CancelAsked,
    FailingBegun,
    FailureNoted,
    JobEvent,
    Led,
    Prepared,
    Replanned,
    Restarted,
    Scheduled,
    TaskEnded,
)
from engine.jobmaster.partition_tracker import partitions_to_release
from engine.jobmaster.region_failover import RegionFailover
from engine.jobmaster.restart_strategy import RestartStrategy
from engine.jobmaster.run_time_planner import RunTimePlanner
from engine.jobmaster.scheduler import RegionState, Scheduler
from engine.jobmaster.slot_pool import AllocatedSlot, SlotPool
from engine.jobmaster.state_times import packed_times

_log = logging.getLogger(__name__)

#: errors that an event raises when it does not fit the job
_MISFITS = (EngineError, ValueError, LookupError, AssertionError)


class RecoveredJob(NamedTuple):
    """The state that earlier leaders left of a job. ``decision``: the one in force, if any."""

    events: Sequence[JobEvent]
    decision: Decision | None = None


class JobFacts:
    """One job: its graph, regions, slots, decisions and failures. A new one has not begun."""

    def __init__(self, job_graph: JobGraph, strategy: RestartStrategy, clock: Clock) -> None:
        self.clock = clock
        self.graph = build_execution_graph(job_graph)
        self.scheduler = Scheduler(self.graph)
        self.pool = SlotPool()
        self.planner = RunTimePlanner(self.graph)
        self.failover = RegionFailover(self.graph, self.scheduler, strategy)
        self.failures = FailureHistory(clock)
        #: staging of each sink; None: not prepared
        self.staging: dict[int, Staging] | None = None
        #: states of places that change, held by this leader
        self.held_states: dict[str, str] = {}
        #: outputs as their targets tell of them, once they are published
        self.published: tuple[PublishedOutput, ...] = ()
        #: time at which the first leader began, ms since 1970
        self.start_ms = clock.wall_ms()
        self.is_cancelling = self.is_failing = False
        #: addresses of TaskExecutors that ever offered a slot
        self.task_executors: dict[ResourceId, str] = {}
        self._leader_count = 0

    @classmethod
    def rebuild(
        cls, job_graph: JobGraph, strategy: Callable[[], RestartStrategy], clock: Clock, events: Sequence[JobEvent]
    ) -> Self:
        """Return the state after these events, or after those before the first one that does not fit."""
        state = cls(job_graph, strategy(), clock)
        for index, event in enumerate(events):
            try:
                state.apply(event)
            except _MISFITS:
                _log.exception("job %s is taken up as it was before event %d: %s", job_graph.job_id, index, event)
                return cls.rebuild(job_graph, strategy, clock, events[:index])
        state.pool = SlotPool(random.SystemRandom().getrandbits(31) << 20)
        for slot in state.scheduler.used_slots:
            state.pool.adopt(slot)
        return state

    def apply(self, event: JobEvent) -> None:
        """Take note of an event that followed the ones so far."""
        match event:
            case Led():
                self.start_ms = self.start_ms if self._leader_count else event.time_ms
                self._leader_count += 1
            case Prepared():
                self.staging = event.places
            case BoundsChosen():
                self.graph.results[event.data_set].partitions[0].range_bounds = event.bounds
            case Scheduled():
                self._schedule(event)
            case TaskEnded():
                self._end_task(event)
            case FailureNoted():
                self.failures.add(event.failure, event.time_ms)
            case Replanned():
                self.planner.adopt(event.decisions)
                self.scheduler.revise()
            case Restarted():
                self._restart(event)
            case CancelAsked():
                self.is_cancelling = True
            case FailingBegun():
                self.is_failing = True
                self.failures.end_job()

    def _schedule(self, event: Scheduled) -> None:
        subtasks = [self._adopt(each.attempt) for each in event.attempts]
        slots: dict[AllocationId, AllocatedSlot] = {}
        for subtask, each in zip(subtasks, event.attempts, strict=True):
            # One object for each slot: attempts that share a slot share it.
            subtask.current.slot = slots.setdefault(each.slot.allocation_id, each.slot)
            self.task_executors[each.slot.resource_id] = each.slot.address
            subtask.current.transition(ExecutionState.SCHEDULED, StoppedClock(Moment(0.0, event.time_ms)))
        self.scheduler.resume(subtasks)

    def _adopt(self, attempt: ExecutionAttemptId) -> ExecutionVertex:
        """Make that attempt the current one of a subtask that has not begun."""
        vertex = self.graph.vertices[attempt.vertex.index].subtasks[attempt.subtask_index]
        current = vertex.current
        if current.state is not ExecutionState.CREATED or current.attempt.attempt_number != attempt.attempt_number:
            raise ValueError(f"{vertex.name} is {current.state} in attempt {current.attempt}, not to begin {attempt}")
        vertex.current = Execution(attempt, times=current.times)
        return vertex

    def _end_task(self, event: TaskEnded) -> None:
        vertex = self.graph.update(event.report, self.clock)
        if vertex is None:
            raise ValueError(f"{event.report.attempt} has ended, and did not run")
        vertex.current.times = packed_times(event.timestamps_ms)
        self.scheduler.subtask_ended(vertex, self.pool)
        if vertex.current.state is ExecutionState.FINISHED:
            partitions_to_release(vertex)

    def _restart(self, event: Restarted) -> None:
        subtasks = [self.graph.vertices[each.vertex.index].subtasks[each.subtask_index] for each in event.attempts]
        cancel(subtasks, self)
        if any(self.scheduler.region_of(subtask).state is not RegionState.DONE for subtask in subtasks):
            raise ValueError("a region runs again that has not run")
        ago_s = max(0, self.clock.wall_ms() - event.failed_ms) / 1000
        self.failover.adopt(subtasks, self.clock.monotonic_s() - ago_s, event.time_ms)
        self.failures.mended()


def cancel(subtasks: Sequence[ExecutionVertex], state: JobFacts) -> None:
    """Count attempts that have not ended as cancelled: no report of them will come."""
    for vertex in subtasks:
        if not vertex.current.state.is_terminal:
            if vertex.current.state is not ExecutionState.CANCELING:
                vertex.current.transition(ExecutionState.CANCELING, state.clock)
            vertex.current.transition(ExecutionState.CANCELED, state.clock)
            state.scheduler.subtask_ended(vertex, state.pool)
