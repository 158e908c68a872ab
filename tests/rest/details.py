"""JobDetails made by hand: a join that runs, with a subtask that was tried twice."""

from __future__ import annotations

from engine.gateways.job_details import AttemptDetails, InputDetails, JobDetails, JobFailure, VertexDetails
from engine.graph.deployment import FailureInfo, TaskCounters
from engine.ids import JobId

JOB_ID = JobId("ab" * 16)
TASK_MANAGER = "cd" * 16
ADDRESS = f"127.0.0.1:4711/taskexecutor-{TASK_MANAGER}"
NASTY = "<script>alert('x')</script>"


def attempt(index: int, state: str = "RUNNING", number: int = 0, **counters: int) -> AttemptDetails:
    end_ms = 5000 if state in ("FINISHED", "FAILED") else -1
    times = {"CREATED": 1000, "DEPLOYING": 1100, "RUNNING": 1500}
    if end_ms > 0:
        times[state] = end_ms
    failure = FailureInfo("ValueError", NASTY, details="Traceback ...") if state == "FAILED" else None
    return AttemptDetails(
        index, number, state, TASK_MANAGER, ADDRESS, 1100, end_ms, times, TaskCounters(**counters), failure
    )


def job(name: str = "prices", status: str = "RUNNING") -> JobDetails:
    scan = VertexDetails(
        f"{0:032x}",
        f"scan {NASTY}",
        1,
        128,
        "FINISHED",
        1100,
        5000,
        (attempt(0, "FINISHED", rows_out=7, bytes_out=70, spilled_bytes=2048, idle_ms=500, back_pressured_ms=1000),),
        (),
    )
    join = VertexDetails(
        f"{1:032x}",
        "join",
        2,
        128,
        "RUNNING",
        1100,
        -1,
        (
            attempt(0, rows_in=3, bytes_in=30, managed_bytes_peak=3 << 20, arrow_bytes_peak=5 << 20),
            attempt(1, number=1, rows_in=4, bytes_in=40, arrow_bytes_peak=9 << 20, worker_bytes_peak=70 << 20),
        ),
        (InputDetails(scan.id, "HASH", "BLOCKING"),),
        (attempt(1, "FAILED"),),
    )
    failure = JobFailure(5000, FailureInfo("ValueError", NASTY, task="join (2/2)", task_manager=TASK_MANAGER))
    end_ms = -1 if status == "RUNNING" else 9000
    times = {"INITIALIZING": 900, "CREATED": 950, "RUNNING": 1000}
    if end_ms > 0:
        times[status] = end_ms
    return JobDetails(JOB_ID, name, status, 900, end_ms, times, (scan, join), (), (failure,))
