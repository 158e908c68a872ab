"""What a TaskExecutor tells JobMasters about tasks: states in order, counters now and then.

    state changes of one task ─► its queue ─► one sender: the next is sent when the last was acknowledged
    counters of running tasks ─► every 200 ms, one message for each JobMaster

A report that cannot be delivered is tried again; a JobMaster that is fenced off or gone is given up: its tasks are
cancelled by whoever notices (heartbeats, the next leader).
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable

from engine.errors import EngineError
from engine.gateways.messages import PartitionConsumable, ReportProgress, TaskProgress, UpdateTaskState
from engine.graph.deployment import TaskReport
from engine.ids import ResultPartitionId
from engine.rpc.errors import RpcTimeoutError
from engine.rpc.gateway import Gateway
from engine.rpc.request import Acknowledge, Request
from engine.taskexecutor.task import Task
from engine.taskexecutor.task_state import TaskState

_log = logging.getLogger(__name__)

PROGRESS_INTERVAL_S = 0.2
_TRIES = 3


class TaskReporter:
    """Sends what tasks report to their JobMasters."""

    def __init__(self, gateway_of: Callable[[str], Gateway]) -> None:
        self._gateway_of = gateway_of
        self._queues: dict[Task, asyncio.Queue[TaskReport]] = {}

    def report(self, task: Task, report: TaskReport) -> None:
        """Queue a state change of a task."""
        self._queues.setdefault(task, asyncio.Queue()).put_nowait(report)

    async def send_reports(self, task: Task) -> None:
        """Send the reports of a task until its last one is delivered."""
        queue = self._queues.setdefault(task, asyncio.Queue())
        gateway = self._gateway_of(task.job_master_address)
        try:
            while True:
                report = await queue.get()
                await self._deliver(gateway, UpdateTaskState(report))
                if TaskState(report.state).is_terminal:
                    return
        finally:
            del self._queues[task]

    async def tell_consumable(self, task: Task, partition: ResultPartitionId) -> None:
        """Tell the JobMaster that a PIPELINED partition can be read; it acknowledges."""
        gateway = self._gateway_of(task.job_master_address)
        await self._deliver(gateway, PartitionConsumable(task.descriptor.job_id, partition))

    async def send_progress(self, tasks: Callable[[], Iterable[Task]]) -> None:
        """Send counters of running tasks for ever."""
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL_S)
            by_job_master: dict[str, list[TaskProgress]] = defaultdict(list)
            for task in tasks():
                if task.state is TaskState.RUNNING:
                    by_job_master[task.job_master_address].append(
                        TaskProgress(task.descriptor.attempt, task.counters())
                    )
            for address, progress in by_job_master.items():
                await self._deliver(self._gateway_of(address), ReportProgress(tuple(progress)))

    async def _deliver(self, gateway: Gateway, request: Request[Acknowledge]) -> None:
        for _ in range(_TRIES):
            try:
                await gateway.ask(request)
                return
            except RpcTimeoutError:
                continue
            except EngineError as error:
                _log.warning("%s refuses %s: %s", gateway.address, type(request).__name__, error)
                return
        _log.warning("%s does not answer %s", gateway.address, type(request).__name__)
