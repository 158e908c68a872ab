"""The state that a recovered job expects on its TaskExecutors, and the part of it that is missing.

    expectations(facts) ─► one for each TaskExecutor that ever gave a slot
    losses(facts, expectations, answers) ─► what is not there
    to_run_again(facts, losses) ─► each with its failure

    expected there            attempts that run, with their slots and partitions; finished ones whose results are
                              still to be read
    there, not expected       is cancelled, dropped and freed by the TaskExecutor
    expected, not there       is lost, and will be computed again
    attempt without a report  was never sent, as far as its TaskExecutor knows: it is sent (again)

Pure. Source: the reconciliation of Flink's FLIP-383.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from engine.gateways.failure_info import cancelled_elsewhere, lost_task_executor
from engine.gateways.messages import AttachedJob
from engine.graph.deployment import FailureInfo
from engine.ids import AllocationId, ExecutionAttemptId, ResourceId, ResultPartitionId
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex, IntermediateResultPartition
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.slot_pool import AllocatedSlot


class Expectation(msgspec.Struct):
    """The tasks, slots and results that one TaskExecutor should have of the job."""

    address: str
    attempts: list[ExecutionAttemptId] = msgspec.field(default_factory=list)
    partitions: list[ResultPartitionId] = msgspec.field(default_factory=list)
    slots: list[AllocationId] = msgspec.field(default_factory=list)
    #: True if the job needs anything of that
    is_needed: bool = False


def expectations(facts: JobFacts) -> dict[ResourceId, Expectation]:
    """Return the expected state of each TaskExecutor that ever offered a slot."""
    expected = {resource_id: Expectation(address) for resource_id, address in facts.task_executors.items()}
    for slot in facts.scheduler.used_slots:
        expected[slot.resource_id].slots.append(slot.allocation_id)
    for vertex in facts.graph:
        execution = vertex.current
        if execution.slot is None or execution.state in (ExecutionState.CANCELED, ExecutionState.FAILED):
            continue
        there = expected[execution.slot.resource_id]
        there.attempts.append(execution.attempt)
        there.partitions += [partition.id for partition in vertex.partitions if _may_be_read(partition)]
        there.is_needed |= not execution.state.is_terminal or vertex.is_needed
    return expected


def _may_be_read(partition: IntermediateResultPartition) -> bool:
    return not partition.is_released and not partition.is_read


class Losses(msgspec.Struct):
    """Missing state: TaskExecutors, attempts without their slots, finished ones without their results."""

    task_executors: list[ResourceId] = msgspec.field(default_factory=list)
    attempts: list[ExecutionVertex] = msgspec.field(default_factory=list)
    results: list[ExecutionVertex] = msgspec.field(default_factory=list)


def losses(
    facts: JobFacts, expected: Mapping[ResourceId, Expectation], answers: Mapping[ResourceId, AttachedJob]
) -> Losses:
    """Compare the expected state with the answers of TaskExecutors and return what is missing; damage is noted.

    What has finished since its TaskExecutor answered is there: the answer cannot name its results.
    """
    lost = Losses([each for each in expected if each not in answers])
    ran_on = {
        report.attempt
        for answer in answers.values()
        for report in answer.reports
        if not ExecutionState(report.state).is_terminal
    }
    held = {resource_id: (set(answer.slots), set(answer.partitions)) for resource_id, answer in answers.items()}
    for vertex in facts.graph:
        execution, slot = vertex.current, vertex.current.slot
        if slot is None or slot.resource_id not in held:
            continue
        slots, partitions = held[slot.resource_id]
        if isinstance(slot, AllocatedSlot) and not execution.state.is_terminal and slot.allocation_id not in slots:
            lost.attempts.append(vertex)
        elif execution.state is ExecutionState.FINISHED and vertex.is_needed and execution.attempt not in ran_on:
            missing = [
                partition
                for partition in vertex.partitions
                if partition.data_set.result_type.is_persistent
                and _may_be_read(partition)
                and partition.id not in partitions
            ]
            for partition in missing:
                partition.is_damaged = True
            if missing:
                lost.results.append(vertex)
    return lost


def to_run_again(facts: JobFacts, lost: Losses) -> list[tuple[ExecutionVertex, FailureInfo]]:
    """Return attempts that failed, were torn down or are missing, with reasons; slots of ended regions are freed."""
    hurt = {vertex.id: vertex for vertex in lost.results}
    for vertex in facts.graph:
        has_ended = vertex.current.state in (ExecutionState.FAILED, ExecutionState.CANCELED)
        if has_ended:
            facts.scheduler.subtask_ended(vertex, facts.pool)
        if has_ended or (vertex.current.is_lost and vertex.is_needed):
            hurt[vertex.id] = vertex
    return [(vertex, why_missing(vertex)) for vertex in hurt.values()]


def why_missing(vertex: ExecutionVertex) -> FailureInfo:
    """Return the reason for which an attempt that is missing, or has not finished, has to run again."""
    execution = vertex.current
    if execution.failure is not None:
        return execution.failure
    if execution.state is ExecutionState.CANCELED:
        return cancelled_elsewhere(vertex.name)
    what = "a result of it is" if execution.state is ExecutionState.FINISHED and not execution.is_lost else "it is"
    resource_id = "" if execution.slot is None else str(execution.slot.resource_id)
    return lost_task_executor(resource_id, f"{what} missing after a fail-over of the JobManager", vertex.name)
