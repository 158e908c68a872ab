"""TaskExecutorSettings: what a TaskExecutor is told when it is made.

Held by: tests/taskexecutor/test_registration.py
"""

from __future__ import annotations

import msgspec

from engine.gateways.task_executors import TaskExecutorHardware
from engine.rpc.program import Program


class TaskExecutorSettings(msgspec.Struct, frozen=True):
    """The settings of a TaskExecutor. Times in seconds."""

    slot_count: int
    pages: int
    heartbeat_interval_s: float
    heartbeat_timeout_s: float
    cancellation_timeout_s: float
    #: address at which other processes read partitions; "": none
    data_address: str = ""
    hardware: TaskExecutorHardware = msgspec.field(default_factory=TaskExecutorHardware)
    #: time that tasks and results are kept for the JobMaster of a new leader; 0: jobs end with their JobMaster
    reattach_timeout_s: float = 0.0
    #: additional pages, for all slots together, where no Python functions run
    spare_pages: int = 0
    #: program that the process reports
    program: Program = Program()
