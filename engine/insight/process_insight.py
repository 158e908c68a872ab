"""ProcessInsight: the endpoint of a process that answers people who watch it.

    insight-<resource id>     ListLogs, ReadLog, RequestThreadDump, RequestProcessMetrics, SamplePressure,
                              SampleStacks

It answers calls of any epoch. Files are read off the loop. Attempts are looked at on the loop, again and again as
long as a sample takes. Several callers that ask for the same sample at one time share it.

Held by: tests/rest/test_process_routes.py
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from typing import TypeVar

from engine.gateways.insight import (
    INSIGHT_PREFIX,
    ListLogs,
    LogList,
    LogPart,
    PressureSample,
    ProcessInsightGateway,
    ProcessMetrics,
    ReadLog,
    RequestProcessMetrics,
    RequestThreadDump,
    SamplePressure,
    SampleStacks,
    StackSample,
    TaskActivity,
    TaskPressure,
    ThreadDump,
)
from engine.ids import ExecutionAttemptId, JobId, ResourceId
from engine.insight.log_folder import LogFolder
from engine.insight.process_meter import ProcessMeter
from engine.insight.stack_sampler import SECONDS_MAX, StackSampler
from engine.insight.thread_dump import thread_dump
from engine.rpc.endpoint import RpcEndpoint

R = TypeVar("R")

#: name of the standard output among log files
STDOUT = "stdout"


#: function that returns the attempts of a job that run here, and the activity of each
Activities = Callable[[JobId], Iterable[tuple[ExecutionAttemptId, TaskActivity]]]


class _NoFence:
    """A fence that accepts every epoch: nothing is changed here."""

    def check(self, epoch: int) -> None:
        """Do nothing."""


class ProcessInsight(RpcEndpoint):
    """Answers for one process.

    Args:
        resource_id: of the process.
        logs: its log files.
        blocking_work: reads them.
        activities: what attempts of a job do now.
        meter: numbers of the process.
        usage: further metrics of this process; called in a thread.
    """

    protocol = ProcessInsightGateway

    def __init__(
        self,
        resource_id: ResourceId,
        logs: LogFolder,
        blocking_work: Executor,
        activities: Activities,
        meter: ProcessMeter | None = None,
        usage: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        super().__init__(f"{INSIGHT_PREFIX}{resource_id}", _NoFence())
        self._logs = logs
        self._blocking_work = blocking_work
        self._activities = activities
        self._meter = meter or ProcessMeter()
        self._usage = usage
        self._stacks = StackSampler()
        self._sampling: dict[SamplePressure, asyncio.Task[PressureSample]] = {}

    async def list_logs(self, request: ListLogs) -> LogList:
        """Return the names of the log files."""
        return LogList(await self._in_thread(lambda: self._logs.files(_text(request.job_id))))

    async def read_log(self, request: ReadLog) -> LogPart:
        """Return a part of a log file."""
        name = {"": self._logs.log, STDOUT: self._logs.output}.get(request.name, request.name)
        job_id = _text(request.job_id)
        return await self._in_thread(lambda: self._logs.read(name, request.offset, request.limit, job_id))

    async def request_thread_dump(self, request: RequestThreadDump) -> ThreadDump:
        """Return the stacks of all threads."""
        return ThreadDump(thread_dump())

    async def request_process_metrics(self, request: RequestProcessMetrics) -> ProcessMetrics:
        """Return the metrics of the process."""
        return ProcessMetrics({**self._meter.read(), **await self._in_thread(self._usage)})

    async def sample_pressure(self, request: SamplePressure) -> PressureSample:
        """Return the activities of a job's attempts."""
        sampling = self._sampling.get(request)
        if sampling is None:
            sampling = asyncio.get_running_loop().create_task(self._sample(request), name=f"{self.address}: sample")
            self._sampling[request] = sampling
            self._background.add(sampling)
            sampling.add_done_callback(self._completed)
            sampling.add_done_callback(lambda _: self._sampling.pop(request, None))
        return await asyncio.shield(sampling)

    async def sample_stacks(self, request: SampleStacks) -> StackSample:
        """Return the stacks of all threads during some seconds."""
        return await self._stacks.sample(min(request.seconds, SECONDS_MAX))

    async def _sample(self, request: SamplePressure) -> PressureSample:
        seen: dict[ExecutionAttemptId, Counter[TaskActivity]] = {}
        for round_number in range(request.count):
            if round_number:
                await asyncio.sleep(request.interval_ms / 1000)
            for attempt, activity in self._activities(request.job_id):
                seen.setdefault(attempt, Counter())[activity] += 1
        return PressureSample(tuple(_pressure(attempt, counts) for attempt, counts in sorted(seen.items())))

    async def _in_thread(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._blocking_work, work)


def _pressure(attempt: ExecutionAttemptId, counts: Counter[TaskActivity]) -> TaskPressure:
    total = counts.total()
    return TaskPressure(
        attempt,
        counts[TaskActivity.BACK_PRESSURED] / total,
        counts[TaskActivity.BUSY] / total,
        counts[TaskActivity.IDLE] / total,
    )


def _text(job_id: JobId | None) -> str | None:
    return None if job_id is None else job_id.value
