"""The ResourceManager's protocol: TaskExecutors register their slots, JobMasters request them.

Requests are served in the order of their jobs' turns, each one whole or not yet.

Held by: tests/resourcemanager/test_resource_manager.py
"""

from __future__ import annotations

from typing import Protocol

from engine.gateways.job_queue import RequestWaitingJobs, WaitingJobs
from engine.gateways.messages import (
    DisconnectTaskExecutor,
    EndTaskExecutors,
    NotifySlotFree,
    RegisterTaskExecutor,
    RegistrationReply,
    RequestSlotOverview,
    RequestSlots,
    SlotOverview,
    StayConnected,
    SuspectTaskExecutor,
    WithdrawSlotRequests,
)
from engine.gateways.task_executors import DrainTaskExecutor, ListTaskExecutors, TaskExecutorList
from engine.rpc.request import Acknowledge


class ResourceManagerGateway(Protocol):
    """The ResourceManager."""

    async def register_task_executor(self, request: RegisterTaskExecutor) -> RegistrationReply:
        """Register a TaskExecutor and its slots."""
        ...

    async def stay_connected(self, request: StayConnected) -> Acknowledge:
        """Answer after a while; ResourceError when the TaskExecutor is not known (it registers again then)."""
        ...

    async def disconnect_task_executor(self, request: DisconnectTaskExecutor) -> Acknowledge:
        """Remove a TaskExecutor that leaves."""
        ...

    async def suspect_task_executor(self, request: SuspectTaskExecutor) -> Acknowledge:
        """Check at once whether a TaskExecutor is still there."""
        ...

    async def drain_task_executor(self, request: DrainTaskExecutor) -> Acknowledge:
        """Have a TaskExecutor take no more slots and end once nothing is left on it."""
        ...

    async def end_task_executors(self, request: EndTaskExecutors) -> Acknowledge:
        """Ask every TaskExecutor to end its process; those that do not answer are left alone."""
        ...

    async def request_slots(self, request: RequestSlots) -> Acknowledge:
        """Queue a request for slots; they are offered by their TaskExecutors."""
        ...

    async def withdraw_slot_requests(self, request: WithdrawSlotRequests) -> Acknowledge:
        """Remove what a job still waits for."""
        ...

    async def notify_slot_free(self, request: NotifySlotFree) -> Acknowledge:
        """Record that a slot was given back."""
        ...

    async def list_task_executors(self, request: ListTaskExecutors) -> TaskExecutorList:
        """Return the registered TaskExecutors."""
        ...

    async def request_slot_overview(self, request: RequestSlotOverview) -> SlotOverview:
        """Return the jobs that hold slots."""
        ...

    async def request_waiting_jobs(self, request: RequestWaitingJobs) -> WaitingJobs:
        """Return the jobs that have no slot and wait for some."""
        ...
