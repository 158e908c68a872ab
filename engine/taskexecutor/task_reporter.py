"""Reports of a TaskExecutor to JobMasters about tasks: states in order, and counters now and then.

    state changes of the tasks of a job ─► its queue ─► one sender: when its last message was acknowledged, all that has
                                                        come meanwhile is the next one; what no other task waits for
                                                        may wait for more, BEGUN_S
    counters of running tasks ─► every 400 ms, one message for each JobMaster; with them what a task waits for that
                                 has done nothing since the last time, and the memory of this process; none of a task
                                 that was not there the last time: most of them end before the next time

A report is tried again until a JobMaster has it: the one that began the task, or the next leader's that goes on with
it, to which the task's address is changed meanwhile. Where the JobManager takes no message of this process, as their
clocks differ, that may be over before this process counts as lost. When the job is released here, no report waits for
reports.

Held by: tests/minicluster/test_minicluster.py
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

import msgspec

from engine.errors import EngineError, FencedError
from engine.gateways.memory_use import MemoryInUse
from engine.gateways.messages import ReportProgress, TaskProgress, UpdateTaskStates
from engine.graph.deployment import TaskCounters, TaskReport
from engine.ids import JobId
from engine.rpc.errors import REFUSES_ALL, EndpointUnreachableError, RpcTimeoutError
from engine.rpc.gateway import Gateway
from engine.rpc.request import Acknowledge, Request
from engine.taskexecutor.task import Task
from engine.taskexecutor.task_state import TaskState

_log = logging.getLogger(__name__)

PROGRESS_INTERVAL_S = 0.4
_FIRST_PAUSE_S = 0.1
_LAST_PAUSE_S = 2.0
#: seconds for which tasks that have begun are not reported yet: others begin, and short ones end
BEGUN_S: Final = 0.1
#: state changes in one message
REPORTS_MAX: Final = 64


def work_of(counters: TaskCounters) -> tuple[int, ...]:
    """Return the counters that grow when a task does something; not those of time and memory."""
    return (
        counters.rows_in,
        counters.rows_out,
        counters.bytes_in,
        counters.bytes_out,
        counters.spilled_bytes,
        counters.stored_bytes,
    )


class _Outbox(msgspec.Struct, eq=False):
    """State changes of the tasks of one job that its JobMaster does not know yet."""

    job_id: JobId
    address: str  # of the JobMaster
    #: times of the loop's clock at which reports were made, and the reports
    reports: list[tuple[float, TaskReport]] = msgspec.field(default_factory=list)
    #: event that a report must not wait for more
    is_urgent: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class TaskReporter:
    """Sends what tasks report to their JobMasters.

    Args:
        gateway_of: connects to an address.
        is_wanted: whether a job has not been released.
        spawn: begins work beside everything else.
    """

    def __init__(
        self,
        gateway_of: Callable[[str], Gateway],
        is_wanted: Callable[[JobId], bool],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        self._gateway_of = gateway_of
        self._is_wanted = is_wanted
        self._spawn = spawn
        #: outboxes of the jobs whose reports are being sent
        self._outboxes: dict[JobId, _Outbox] = {}

    @property
    def is_idle(self) -> bool:
        """Whether every state change has been delivered."""
        return not self._outboxes

    def report(self, task: Task, report: TaskReport) -> None:
        """Queue a state change of a task."""
        job_id, address = task.descriptor.job_id, task.job_master_address
        outbox = self._outboxes.get(job_id)
        if outbox is None:
            outbox = self._outboxes[job_id] = _Outbox(job_id, address)
            self._spawn(self._send(outbox), f"reports to {address}")
        outbox.address = address
        outbox.reports.append((asyncio.get_running_loop().time(), report))
        if _is_urgent(task, report):
            outbox.is_urgent.set()

    def turn_to(self, job_id: JobId, address: str) -> None:
        """Send what a job still has to report to another JobMaster."""
        if job_id in self._outboxes:
            self._outboxes[job_id].address = address

    async def _send(self, outbox: _Outbox) -> None:
        try:
            while outbox.reports:
                await _more(outbox)
                now_s = asyncio.get_running_loop().time()
                batch = []
                for made_s, report in outbox.reports[:REPORTS_MAX]:
                    age_ms = int((now_s - made_s) * 1000)
                    batch.append(msgspec.structs.replace(report, age_ms=age_ms) if age_ms else report)
                del outbox.reports[:REPORTS_MAX]
                if not outbox.reports:
                    outbox.is_urgent.clear()
                await self._deliver(outbox, UpdateTaskStates(tuple(batch)))
        finally:
            del self._outboxes[outbox.job_id]

    async def send_progress(self, tasks: Callable[[], Iterable[Task]], memory: Callable[[], MemoryInUse]) -> None:
        """Send counters of running tasks for ever; what is not delivered is followed by later ones."""
        done: dict[Task, tuple[int, ...]] = {}
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL_S)
            before, done = done, {}
            by_job_master: dict[str, list[TaskProgress]] = defaultdict(list)
            for task in tasks():
                if task.state is not TaskState.RUNNING:
                    continue
                done[task], progress = (), by_job_master[task.job_master_address]
                counters = task.counters() if task in before else None
                if counters is not None:
                    done[task] = work_of(counters)
                    wait = task.wait() if before[task] == done[task] else None
                    progress.append(TaskProgress(task.descriptor.attempt, counters, wait))
            in_use = memory() if by_job_master else None
            for address, progress in by_job_master.items():
                try:
                    await self._gateway_of(address).ask(ReportProgress(tuple(progress), in_use))
                except EngineError as error:
                    _log.debug("%s has no use for progress: %s", address, error)

    async def _deliver(self, outbox: _Outbox, request: Request[Acknowledge]) -> None:
        pause_s, told = _FIRST_PAUSE_S, ""
        while self._is_wanted(outbox.job_id):
            address = outbox.address
            try:
                await self._gateway_of(address).ask(request)
                return
            except (RpcTimeoutError, EndpointUnreachableError, FencedError, *REFUSES_ALL) as error:
                if told != address:
                    _log.warning("%s does not take %s: %s", address, type(request).__name__, error)
                told = address
            except EngineError as error:
                _log.warning("%s refuses %s: %s", address, type(request).__name__, error)
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LAST_PAUSE_S)


def _is_urgent(task: Task, report: TaskReport) -> bool:
    """Whether others wait for a report: all do for an end, and tasks elsewhere for one that sends them rows."""
    if report.state not in (TaskState.INITIALIZING, TaskState.RUNNING):
        return True
    for each in task.descriptor.partitions:
        if each.result_type.is_pipelined and each.partitioner.kind != "FORWARD":
            return True
    return False


async def _more(outbox: _Outbox) -> None:
    """Wait until a report is urgent, or for a moment."""
    if not outbox.is_urgent.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEGUN_S):
                await outbox.is_urgent.wait()
