"""JobTasks: what becomes of a job's attempts: reports are taken in, attempts are cancelled. A part of ``JobState``.

    learn(report) ─► the attempt changes ─► it has ended: TaskEnded is written down; unneeded results are released
    replan(finished) ─► the plan of what has not begun follows real sizes
    cancel(subtasks) ─► at once what was never sent, else a Cancel

Pure.

Held by: tests/jobmaster/test_job_state.py
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import msgspec

from engine.errors import DiskFullError, MachineLimitError, PartitionConnectionError
from engine.gateways.messages import ReleasePartitions, ReportProgress
from engine.graph.deployment import FailureInfo, TaskReport
from engine.ids import ResultPartitionId
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex
from engine.jobmaster.job_event import Replanned, TaskEnded
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_instruction import Cancel, Instruction, ReviseOutputs, Tell, WriteDown
from engine.jobmaster.job_links import JobLinks
from engine.jobmaster.memory_history import MemoryHistory
from engine.jobmaster.partition_tracker import partitions_to_release
from engine.jobmaster.repeated_failure import RepeatedFailure
from engine.jobmaster.scheduler import PRODUCING
from engine.jobmaster.stall_watch import StallWatch

_log = logging.getLogger(__name__)


class JobTasks:
    """Attempts of one job. ``out`` takes the instructions."""

    def __init__(
        self,
        facts: JobFacts,
        out: list[Instruction],
        stall: StallWatch,
        repeated: RepeatedFailure,
        links: JobLinks,
        memory: MemoryHistory,
    ) -> None:
        self._memory = memory
        self._links = links
        self._facts = facts
        self._out = out
        self._stall = stall
        self._repeated = repeated

    def learn(self, report: TaskReport) -> ExecutionVertex | None:
        """Take note of a report; return the subtask that it changed."""
        facts = self._facts
        known = facts.graph.vertex_of(report.attempt) if report.counters.spilled_bytes else None
        before = 0 if known is None else known.current.counters.spilled_bytes
        vertex = facts.graph.update(report, facts.clock)
        self._stall.moved()
        if vertex is None:
            return None
        if known is not None:
            self._memory.spilled(vertex.current.counters.spilled_bytes - before)
        state = vertex.current.state
        if state in PRODUCING:
            facts.scheduler.produces(vertex)
        if state.is_terminal:
            facts.scheduler.subtask_ended(vertex, facts.pool)
            ended = report if state == report.state else msgspec.structs.replace(report, state=str(state))
            self._out.append(WriteDown(TaskEnded(ended, vertex.current.timestamps_ms)))
            if state is ExecutionState.FINISHED:
                unneeded = partitions_to_release(vertex)
                if unneeded:
                    self.release(unneeded)
        return vertex

    def why_failed(self, vertex: ExecutionVertex, report: TaskReport) -> FailureInfo:
        """Return the failure of an attempt; the TaskExecutor is avoided where it may be the cause."""
        failure = report.failure or FailureInfo("JobExecutionError", "the task failed without a reason")
        slot = vertex.current.slot
        if slot is None:
            return failure
        if failure.type_name == PartitionConnectionError.__name__:
            return self._links.why_failed(failure, slot)
        is_again = self._repeated.failed(failure, slot.resource_id)
        if is_again or failure.type_name in (DiskFullError.__name__, MachineLimitError.__name__):
            self._facts.pool.suspected.add(slot.resource_id)
        return failure

    def progressed(self, progress: ReportProgress) -> str | None:
        """Record counters of running attempts; return what to tell people when none of them can go on."""
        for each in progress.tasks:
            vertex = self._facts.graph.vertex_of(each.attempt)
            if vertex is not None and not vertex.current.state.is_terminal:
                more_bytes = each.counters.spilled_bytes - vertex.current.counters.spilled_bytes
                if more_bytes > 0:
                    self._memory.spilled(more_bytes)
                vertex.current.counters = each.counters
        if progress.memory is not None:
            self._memory.noted(progress.memory, self._facts.clock.wall_ms())
        return self._stall.note(progress.tasks, self._facts.clock.monotonic_s())

    def replan(self, finished: ExecutionVertex) -> tuple[int, ...]:
        """Apply the real size of a finished result to the plan; return slot requests of regions that are gone.

        Raises: PlanError when the job must not go on.
        """
        facts = self._facts
        decisions = facts.planner.replan(finished)
        if not decisions:
            return ()
        for decision in decisions:
            _log.info("job %s: %s", facts.graph.job_graph.job_id, decision.text)
        self._out += (WriteDown(Replanned(decisions)), ReviseOutputs(facts.graph.job_graph))
        return facts.scheduler.revise()

    def cancel(self, subtasks: Iterable[ExecutionVertex]) -> None:
        """Cancel attempts."""
        facts = self._facts
        for vertex in subtasks:
            execution = vertex.current
            if execution.state in (ExecutionState.CREATED, ExecutionState.SCHEDULED):
                execution.transition(ExecutionState.CANCELING, facts.clock)
                execution.transition(ExecutionState.CANCELED, facts.clock)
                facts.scheduler.subtask_ended(vertex, facts.pool)
            elif execution.state.is_deployed and execution.state is not ExecutionState.CANCELING:
                execution.transition(ExecutionState.CANCELING, facts.clock)
                self.send_cancel(vertex)

    def send_cancel(self, vertex: ExecutionVertex) -> None:
        """Send the cancellation to the TaskExecutor of an attempt."""
        slot = vertex.current.slot
        assert slot is not None, f"{vertex.name} runs without a slot"
        self._out.append(Cancel(vertex.current.attempt, vertex.name, slot.address, slot.resource_id))

    def release(self, partitions: Mapping[str, tuple[ResultPartitionId, ...]]) -> None:
        """Make TaskExecutors drop results without readers."""
        self._out += (Tell(address, ReleasePartitions(ids)) for address, ids in partitions.items())
