"""The Dispatcher's protocol: clients submit, watch and cancel jobs.

Unknown job ids raise JobNotFoundError. Submission is idempotent by job id.

Held by: tests/dispatcher/test_cluster_components.py
"""

from __future__ import annotations

from typing import Protocol

from engine.gateways.job_details import JobDetails, JobExceptions, RequestJobDetails, RequestJobExceptions
from engine.gateways.messages import (
    CancelJob,
    JobList,
    JobOutcome,
    JobOverview,
    JobProgress,
    ListJobs,
    RequestJobOutcome,
    RequestJobProgress,
    RequestJobStatus,
    SubmitJob,
    SubmitReply,
)
from engine.rpc.request import Acknowledge


class DispatcherGateway(Protocol):
    """The Dispatcher, seen by clients."""

    async def submit_job(self, request: SubmitJob) -> SubmitReply:
        """Start a job, unless one of that id is known already."""
        ...

    async def cancel_job(self, request: CancelJob) -> Acknowledge:
        """Begin to cancel a job."""
        ...

    async def request_job_status(self, request: RequestJobStatus) -> JobOverview:
        """Return a job's state."""
        ...

    async def request_job_progress(self, request: RequestJobProgress) -> JobProgress:
        """Return a job's live numbers."""
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

    async def list_jobs(self, request: ListJobs) -> JobList:
        """Return all jobs."""
        ...
