"""The JobMaster's protocol: slots are offered, tasks report, the Dispatcher asks and cancels.

A report of an attempt that is not current is acknowledged and has no effect.

Held by: tests/taskexecutor/test_reattach.py
"""

from __future__ import annotations

from typing import Protocol

from engine.gateways.job_details import JobDetails, JobExceptions, RequestJobDetails, RequestJobExceptions
from engine.gateways.job_queue import SlotsShort
from engine.gateways.messages import (
    CancelJob,
    JobOutcome,
    JobOverview,
    JobProgress,
    OfferSlots,
    ReportProgress,
    RequestJobOutcome,
    RequestJobProgress,
    RequestJobStatus,
    SlotOfferReply,
    TaskExecutorLost,
    UpdateTaskStates,
)
from engine.gateways.task_executors import TaskExecutorDraining
from engine.ids import JobId
from engine.rpc.request import Acknowledge


def job_master_name(job_id: JobId) -> str:
    """Return the name of the endpoint of a job's JobMaster."""
    return f"jobmaster-{job_id}"


class JobMasterGateway(Protocol):
    """One job's JobMaster."""

    async def offer_slots(self, request: OfferSlots) -> SlotOfferReply:
        """Take the slots that are of use."""
        ...

    async def update_task_states(self, request: UpdateTaskStates) -> Acknowledge:
        """Record state changes of attempts."""
        ...

    async def report_progress(self, request: ReportProgress) -> Acknowledge:
        """Record counters of running attempts."""
        ...

    async def task_executor_lost(self, request: TaskExecutorLost) -> Acknowledge:
        """Treat the attempts on a TaskExecutor as failed."""
        ...

    async def task_executor_draining(self, request: TaskExecutorDraining) -> Acknowledge:
        """Begin no more tasks on a TaskExecutor."""
        ...

    async def slots_short(self, request: SlotsShort) -> Acknowledge:
        """Count the time in which the cluster could never serve what the job waits for."""
        ...

    async def cancel_job(self, request: CancelJob) -> Acknowledge:
        """Begin to cancel."""
        ...

    async def request_job_status(self, request: RequestJobStatus) -> JobOverview:
        """Return the job's state."""
        ...

    async def request_job_progress(self, request: RequestJobProgress) -> JobProgress:
        """Return live numbers."""
        ...

    async def request_job_outcome(self, request: RequestJobOutcome) -> JobOutcome:
        """Return the outcome of the job, once it has ended."""
        ...

    async def request_job_details(self, request: RequestJobDetails) -> JobDetails:
        """Return vertices and attempts; of an ended job the last ones."""
        ...

    async def request_job_exceptions(self, request: RequestJobExceptions) -> JobExceptions:
        """Return the failures so far."""
        ...
