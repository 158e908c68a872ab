"""Reattachment: what a recovered job expects of its TaskExecutors, and what is there.

    expectations(state) ─► one for each TaskExecutor that ever gave a slot
    Reattachment.run ─► each is asked under the new epoch, all at once, until it answers or counts as gone
    losses(expectations, answers) ─► what is not there

    expected there            attempts that run, with their slots and partitions; finished ones whose results are
                              still to be read
    there, not expected       is cancelled, dropped and freed by the TaskExecutor
    expected, not there       is lost, and will be computed again
    attempt without a report  was never sent, as far as its TaskExecutor knows: it is sent (again)

A TaskExecutor that refuses the connection three times in a second is gone; one that does not answer has until the
time-out. Who holds nothing that is needed is asked too, so that it drops what it has, but nobody waits for it; without
an answer it is gone as well, so that no later restart counts on what it had. On the JobMaster's loop; ``expectations``
and ``losses`` are pure.

Source: the reconciliation of Flink's FLIP-383, which waits for TaskManagers to come by themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

import msgspec

from engine.clock import Clock
from engine.errors import EngineError, FencedError
from engine.gateways.failure_info import cancelled_elsewhere, lost_task_executor
from engine.gateways.messages import AttachedJob, ReattachJob
from engine.graph.deployment import FailureInfo
from engine.ids import AllocationId, ExecutionAttemptId, ResourceId, ResultPartitionId
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex, IntermediateResultPartition
from engine.jobmaster.job_facts import JobFacts
from engine.rpc.errors import EndpointUnreachableError
from engine.rpc.gateway import ASK_TIMEOUT_S, RpcService

_log = logging.getLogger(__name__)

#: so many refused connections, the first and the last so far apart: nobody is there
_REFUSALS = 3
_REFUSALS_S = 1.0
_PAUSE_S = 0.25


class Expectation(msgspec.Struct):
    """What one TaskExecutor should have of the job."""

    address: str
    attempts: list[ExecutionAttemptId] = msgspec.field(default_factory=list)
    partitions: list[ResultPartitionId] = msgspec.field(default_factory=list)
    slots: list[AllocationId] = msgspec.field(default_factory=list)
    #: whether the job needs anything of that
    is_needed: bool = False


def expectations(state: JobFacts) -> dict[ResourceId, Expectation]:
    """Return what each TaskExecutor that ever gave a slot should have."""
    expected = {resource_id: Expectation(address) for resource_id, address in state.task_executors.items()}
    for slot in state.scheduler.used_slots:
        expected[slot.resource_id].slots.append(slot.allocation_id)
    for vertex in state.graph:
        execution = vertex.current
        if execution.slot is None or execution.state in (ExecutionState.CANCELED, ExecutionState.FAILED):
            continue
        there = expected[execution.slot.resource_id]
        there.attempts.append(execution.attempt)
        there.partitions += [partition.id for partition in vertex.partitions if _may_be_read(partition)]
        there.is_needed |= not execution.state.is_terminal or vertex.is_needed
    return expected


def _may_be_read(partition: IntermediateResultPartition) -> bool:
    return not partition.is_released and len(partition.finished_consumers) < len(partition.consumers)


class Losses(msgspec.Struct):
    """What is not there: TaskExecutors, attempts without their slots, finished ones without their results."""

    task_executors: list[ResourceId] = msgspec.field(default_factory=list)
    attempts: list[ExecutionVertex] = msgspec.field(default_factory=list)
    results: list[ExecutionVertex] = msgspec.field(default_factory=list)


def losses(
    state: JobFacts, expected: Mapping[ResourceId, Expectation], answers: Mapping[ResourceId, AttachedJob]
) -> Losses:
    """Return what is not there, of what the state expects after the reports of the answers; damage is noted.

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
    for vertex in state.graph:
        execution, slot = vertex.current, vertex.current.slot
        if slot is None or slot.resource_id not in held:
            continue
        slots, partitions = held[slot.resource_id]
        if not execution.state.is_terminal and slot.allocation_id not in slots:
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


def why_missing(vertex: ExecutionVertex) -> FailureInfo:
    """Return why an attempt that is not there, or has not finished, has to run again."""
    execution = vertex.current
    if execution.failure is not None:
        return execution.failure
    if execution.state is ExecutionState.CANCELED:
        return cancelled_elsewhere(vertex.name)
    what = "a result of it is" if execution.state is ExecutionState.FINISHED and not execution.is_lost else "it is"
    resource_id = "" if execution.slot is None else str(execution.slot.resource_id)
    return lost_task_executor(resource_id, f"{what} missing after a fail-over of the JobManager", vertex.name)


class Reattachment:
    """Asks the TaskExecutors of one job.

    Args:
        job_master_address: where tasks report to from now on.
        timeout_s: who has not answered until then counts as gone.
        on_attached: told of each that has answered, which waits for heartbeats from then on.
    """

    def __init__(
        self,
        rpc: RpcService,
        epoch: int,
        job_master_address: str,
        timeout_s: float,
        clock: Clock,
        state: JobFacts,
        on_attached: Callable[[ResourceId, str], None],
    ) -> None:
        self.expected = expectations(state)
        self._rpc = rpc
        self._epoch = epoch
        self._job_master_address = job_master_address
        self._timeout_s = timeout_s
        self._clock = clock
        self._job_id = state.graph.job_graph.job_id
        self._on_attached = on_attached
        self._asking: dict[ResourceId, asyncio.Task[AttachedJob | None]] = {}
        self._lost: set[ResourceId] = set()

    async def run(self) -> dict[ResourceId, AttachedJob]:
        """Ask all; return the answers of those that have one when nobody is to be waited for any more."""
        loop = asyncio.get_running_loop()
        self._asking = {
            resource_id: loop.create_task(self._ask(resource_id, there), name=f"reattach {resource_id}")
            for resource_id, there in self.expected.items()
        }
        try:
            needed = [self._asking[resource_id] for resource_id, there in self.expected.items() if there.is_needed]
            if needed:
                await asyncio.wait(needed)
            # The others had as long; where nobody was waited for they are given a moment.
            others = [task for task in self._asking.values() if not task.done()]
            if others:
                await asyncio.wait(others, timeout=_REFUSALS_S)
        finally:
            for task in self._asking.values():
                task.cancel()
        answers: dict[ResourceId, AttachedJob] = {}
        for resource_id, task in self._asking.items():
            with contextlib.suppress(asyncio.CancelledError):
                answer = await task
                if answer is not None and resource_id not in self._lost:
                    answers[resource_id] = answer
        return answers

    def lose(self, resource_id: ResourceId) -> None:
        """Ask a TaskExecutor no longer, and forget its answer: it is known to be gone."""
        self._lost.add(resource_id)
        if resource_id in self._asking:
            self._asking[resource_id].cancel()

    async def _ask(self, resource_id: ResourceId, there: Expectation) -> AttachedJob | None:
        request = ReattachJob(
            self._job_id,
            self._job_master_address,
            tuple(there.attempts),
            tuple(there.partitions),
            tuple(dict.fromkeys(there.slots)),
        )
        begin_s, refused_s = self._clock.monotonic_s(), list[float]()
        while (left_s := begin_s + self._timeout_s - self._clock.monotonic_s()) > 0:
            try:
                gateway = self._rpc.connect(there.address, self._epoch)
                answer = await gateway.ask(request, min(left_s, ASK_TIMEOUT_S))
            except EndpointUnreachableError as error:
                refused_s.append(self._clock.monotonic_s())
                if len(refused_s) >= _REFUSALS and refused_s[-1] - refused_s[0] >= _REFUSALS_S:
                    _log.warning("TaskManager %s is gone: %s", resource_id, error)
                    return None
            except FencedError:
                raise
            except EngineError as error:
                refused_s.clear()
                _log.warning("TaskManager %s has not answered yet: %s", resource_id, error)
            else:
                if answer.resource_id != resource_id:
                    return None
                self._on_attached(resource_id, there.address)
                return answer
            await asyncio.sleep(_PAUSE_S)
        _log.warning("TaskManager %s has not answered for %g s", resource_id, self._timeout_s)
        return None
