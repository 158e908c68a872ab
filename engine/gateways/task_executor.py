"""The TaskExecutor's protocol: slots are assigned, tasks run and are cancelled, partitions are dropped.

Held by: tests/taskexecutor/test_reattach.py
"""

from __future__ import annotations

from typing import Protocol

from engine.gateways.messages import (
    AttachedJob,
    CancelTask,
    EndProcess,
    FreeSlot,
    Heartbeat,
    HeartbeatReply,
    ReattachJob,
    ReleaseJob,
    ReleasePartitions,
    RequestSlot,
    SubmitTasks,
    SubmitTasksReply,
)
from engine.gateways.task_executors import DrainTaskExecutor
from engine.rpc.request import Acknowledge


class TaskExecutorGateway(Protocol):
    """One TaskExecutor."""

    async def request_slot(self, request: RequestSlot) -> Acknowledge:
        """Assign a free slot to a job; it is then offered to the JobMaster."""
        ...

    async def submit_tasks(self, request: SubmitTasks) -> SubmitTasksReply:
        """Start attempts."""
        ...

    async def cancel_task(self, request: CancelTask) -> Acknowledge:
        """Begin to cancel an attempt."""
        ...

    async def free_slot(self, request: FreeSlot) -> Acknowledge:
        """Take a slot back."""
        ...

    async def release_partitions(self, request: ReleasePartitions) -> Acknowledge:
        """Drop result partitions."""
        ...

    async def release_job(self, request: ReleaseJob) -> Acknowledge:
        """Drop everything of a job."""
        ...

    async def reattach_job(self, request: ReattachJob) -> AttachedJob:
        """Go on with a job under another JobMaster; what it does not name is dropped."""
        ...

    async def heartbeat(self, request: Heartbeat) -> HeartbeatReply:
        """Answer with a sign of life."""
        ...

    async def drain_task_executor(self, request: DrainTaskExecutor) -> Acknowledge:
        """Take no more slots, and end the process once nothing is left on it."""
        ...

    async def end_process(self, request: EndProcess) -> Acknowledge:
        """Begin to end the process; the answer comes before its end."""
        ...
