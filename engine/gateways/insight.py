"""Insight into a process for people: messages, and the protocol of the endpoint that answers them.

Questions of any epoch are answered: nothing is changed by them.

Held by: tests/rest/test_job_document.py
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

import msgspec

from engine.ids import ExecutionAttemptId, JobId
from engine.rpc.request import Request

#: prefix of the endpoint's name; the resource id of the process follows
INSIGHT_PREFIX = "insight-"


class LogFile(msgspec.Struct, frozen=True):
    """A log file by name."""

    name: str
    size_bytes: int
    modified_ms: int


class LogList(msgspec.Struct, frozen=True):
    """Log files by name."""

    files: tuple[LogFile, ...]


class ListLogs(Request[LogList], frozen=True):
    """Ask which log files there are: of the process, or those that attempts of a job wrote there."""

    job_id: JobId | None = None


class LogPart(msgspec.Struct, frozen=True):
    """Bytes of a log file from ``offset``; the whole file has ``size_bytes``."""

    content: bytes
    offset: int
    size_bytes: int


class ReadLog(Request[LogPart], frozen=True):
    """Ask for a part of a log file; the name "" is the newest log, "stdout" what was written to standard output.

    A negative offset counts from the end.
    """

    name: str
    offset: int = 0
    limit: int = 1 << 20
    job_id: JobId | None = None


class ThreadInfo(msgspec.Struct, frozen=True):
    """A thread and where it is."""

    name: str
    text: str


class ThreadDump(msgspec.Struct, frozen=True):
    """All threads of a process."""

    threads: tuple[ThreadInfo, ...]


class RequestThreadDump(Request[ThreadDump], frozen=True):
    """Ask where all threads are."""


class ProcessMetrics(msgspec.Struct, frozen=True):
    """Numbers of a process by name."""

    values: dict[str, float]


class RequestProcessMetrics(Request[ProcessMetrics], frozen=True):
    """Ask for the metrics of the process."""


class TaskActivity(Enum):
    """The activity of an attempt at one moment."""

    BUSY = "busy"
    #: waiting for input
    IDLE = "idle"
    #: waiting for room for its output
    BACK_PRESSURED = "back-pressured"


class TaskPressure(msgspec.Struct, frozen=True):
    """Shares (0..1) of the samples in which an attempt waited for room for its output, worked, waited for input."""

    attempt: ExecutionAttemptId
    back_pressured: float
    busy: float
    idle: float


class PressureSample(msgspec.Struct, frozen=True):
    """The activities of a job's attempts while they were sampled."""

    tasks: tuple[TaskPressure, ...]


class SamplePressure(Request[PressureSample], frozen=True):
    """Ask for the activities of a job's attempts: ``count`` samples, every ``interval_ms``."""

    job_id: JobId
    count: int
    interval_ms: int


class Stack(msgspec.Struct, frozen=True):
    """A stack with its time: the name of the thread, then frames from the outermost to the innermost."""

    frames: tuple[str, ...]
    #: microseconds on a processor, and not on one
    busy_us: int = 0
    waiting_us: int = 0


class StackSample(msgspec.Struct, frozen=True):
    """The stacks of the threads of a process during some seconds, those with the most time first."""

    stacks: tuple[Stack, ...]
    seconds: float
    #: name of the sampler, and why it was no better one; "": no reason
    taken_by: str = ""
    note: str = ""
    #: number of stacks with less time, which are not told
    left_out: int = 0


class SampleStacks(Request[StackSample], frozen=True):
    """Ask where the threads of the process are, for some seconds from now."""

    seconds: float


INSIGHT_TYPES: tuple[type[msgspec.Struct], ...] = (
    ListLogs,
    LogList,
    LogPart,
    PressureSample,
    ProcessMetrics,
    ReadLog,
    RequestProcessMetrics,
    RequestThreadDump,
    SamplePressure,
    SampleStacks,
    StackSample,
    ThreadDump,
)


class ProcessInsightGateway(Protocol):
    """A process, as people watch it."""

    async def list_logs(self, request: ListLogs) -> LogList:
        """Return the names of the log files."""
        ...

    async def read_log(self, request: ReadLog) -> LogPart:
        """Return a part of a log file; LogNotFoundError when there is none of that name."""
        ...

    async def request_thread_dump(self, request: RequestThreadDump) -> ThreadDump:
        """Return the stacks of all threads."""
        ...

    async def request_process_metrics(self, request: RequestProcessMetrics) -> ProcessMetrics:
        """Return the metrics of the process."""
        ...

    async def sample_pressure(self, request: SamplePressure) -> PressureSample:
        """Return the activities of a job's attempts; takes as long as the samples."""
        ...

    async def sample_stacks(self, request: SampleStacks) -> StackSample:
        """Return the stacks of all threads during some seconds; takes as long."""
        ...
