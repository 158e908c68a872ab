"""JobCalls: what a JobMaster sends to TaskExecutors and to the ResourceManager, under its epoch. On the loop.

    deploy, cancel ─► asked again without an answer; the input that follows from it, if there is one
    give_back ─► everything that the job holds      tell ─► what need not arrive
    release ─► with the next tasks for the TaskExecutor, else in a message of its own after RELEASE_S

Held by: tests/dispatcher/test_uncertain_deployment.py, tests/jobmaster/test_job_calls.py
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from engine.errors import EngineError, FencedError
from engine.fault_points import reach
from engine.gateways.failure_info import failure_info
from engine.gateways.messages import (
    CancelTask,
    ReleaseJob,
    ReleasePartitions,
    RequestSlotOverview,
    SubmitTasks,
    WithdrawSlotRequests,
)
from engine.ids import ExecutionAttemptId, JobId, ResultPartitionId
from engine.jobmaster.job_ending import EndPhase
from engine.jobmaster.job_input import (
    JobInput,
    SlotsCounted,
    StepDone,
    TaskExecutorSilent,
    TaskRefused,
    TaskSentLate,
    TaskUnanswered,
)
from engine.jobmaster.job_instruction import Cancel, Deploy
from engine.rpc.errors import REFUSES_ALL, EndpointUnreachableError, RpcTimeoutError
from engine.rpc.gateway import RpcService
from engine.rpc.request import Acknowledge, Request

_log = logging.getLogger(__name__)

#: attempts to reach a TaskExecutor that does not answer
_TRIES = 3
#: time limit for a TaskExecutor to end all tasks of a job and free its resources, seconds
_RELEASE_TIMEOUT_S = 60.0
#: seconds for which results that were read wait for a message to their TaskExecutor
RELEASE_S: Final = 0.05


class JobCalls:
    """Calls of one JobMaster."""

    def __init__(self, rpc: RpcService, epoch: int, resource_manager_address: str) -> None:
        self._rpc = rpc
        self._epoch = epoch
        self._resource_manager_address = resource_manager_address
        #: results to release, by the address of their TaskExecutor
        self._released: dict[str, list[ResultPartitionId]] = defaultdict(list)

    async def deploy(self, tasks: Deploy, has_to_run: Callable[[ExecutionAttemptId], bool]) -> list[JobInput]:
        """Send tasks. What was not answered may run: it is sent again as long as it has to run.

        A TaskExecutor that refuses the JobMaster itself (its clock differs) says nothing about the tasks.
        """
        reason, request = "", tasks.request
        for _ in range(_TRIES):
            wanted = tuple([each for each in request.descriptors if has_to_run(each.attempt)])
            if not wanted:
                return []
            released = (*request.released, *self._released.pop(tasks.address, ()))
            request = SubmitTasks(wanted, request.job_master_address, released)
            try:
                reply = await self._rpc.connect(tasks.address, self._epoch).ask(request)
            except (RpcTimeoutError, EndpointUnreachableError, *REFUSES_ALL) as error:
                reason = str(error)
            except EngineError as error:
                return [TaskRefused(each.attempt, failure_info(error)) for each in wanted]
            else:
                if not reply.refused and not reason:
                    return []
                refused = {each.attempt for each in reply.refused}
                late = [TaskSentLate(each.attempt) for each in wanted if reason and each.attempt not in refused]
                return [*(TaskRefused(each.attempt, each.failure) for each in reply.refused if each.failure), *late]
        return [TaskUnanswered(each.attempt, reason) for each in wanted]

    async def cancel(self, task: Cancel) -> JobInput | None:
        """Cancel an attempt."""
        gateway = self._rpc.connect(task.address, self._epoch)
        for _ in range(_TRIES):
            try:
                await gateway.ask(CancelTask(task.attempt))
            except FencedError:
                return None  # another one leads, and sees to it
            except EngineError as error:  # also an answer that cannot be trusted
                reason = str(error)
            else:
                return None
        return TaskExecutorSilent(task.resource_id, reason)

    async def count_slots(self) -> JobInput:
        """Ask the ResourceManager which jobs hold slots."""
        gateway = self._rpc.connect(self._resource_manager_address, self._epoch)
        return SlotsCounted(await gateway.ask(RequestSlotOverview()))

    async def give_back(self, job_id: JobId, addresses: Iterable[str]) -> JobInput:
        """Release everything that the job holds at these TaskExecutors and at the ResourceManager."""
        self._released.clear()
        calls = [self.tell_resource_manager(WithdrawSlotRequests(job_id))]
        calls += [self.tell(address, ReleaseJob(job_id)) for address in addresses]
        await asyncio.gather(*calls)
        reach("job.released")
        return StepDone(EndPhase.GIVING_BACK)

    async def release(self, address: str, partitions: tuple[ResultPartitionId, ...]) -> None:
        """Have a TaskExecutor drop results, with the tasks that it gets next where there are any soon."""
        waiting = self._released[address]
        waiting += partitions
        if len(waiting) > len(partitions):
            return  # with those that wait
        await asyncio.sleep(RELEASE_S)
        if self._released.get(address) is waiting:
            del self._released[address]
            await self.tell(address, ReleasePartitions(tuple(waiting)))

    async def tell_resource_manager(self, request: Request[Acknowledge]) -> None:
        """Send the ResourceManager what need not arrive."""
        await self.tell(self._resource_manager_address, request)

    async def tell(self, address: str, request: Request[Acknowledge]) -> None:
        """Send what need not arrive: a component that is gone holds nothing any more."""
        try:
            await self._rpc.connect(address, self._epoch).ask(request, _RELEASE_TIMEOUT_S)
        except EngineError as error:
            _log.warning("%s to %s: %s", type(request).__name__, address, error)
