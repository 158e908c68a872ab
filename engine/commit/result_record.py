"""The record of how a job ended: written once, by the leader of that moment, and read by any later one.

A leader that takes over finds it and does not run the job again. Source: Flink's JobResult.

Held by: tests/jobmaster/test_job_commit.py
"""

from __future__ import annotations

import msgspec

from engine.ids import JobId


class JobResultRecord(msgspec.Struct, frozen=True):
    """The end of a job. ``status`` is FINISHED, FAILED or CANCELED."""

    job_id: JobId
    name: str
    status: str
    epoch: int
    runtime_ms: int
    message: str = ""
