"""Jobs, TaskManagers and snapshots of them for tests of the overview."""

from engine.gateways.messages import JobList, JobOverview
from engine.gateways.task_executors import TaskExecutorHardware, TaskExecutorList, TaskExecutorOverview
from engine.ids import JobId, ResourceId
from engine.rest.overview_feed import Snapshot
from engine.rpc.program import Program

NOW_MS = 1_000_000_000


def job(number, name="prices", status="RUNNING", ago_s=100, end_ago_s=None, **fields):
    """Return a job that was submitted so long ago."""
    end_ms = -1 if end_ago_s is None else NOW_MS - 1000 * end_ago_s
    return JobOverview(JobId(f"{number:032x}"), name, status, NOW_MS - 1000 * ago_s, end_ms, **fields)


def worker(number, version="1.0"):
    hardware = TaskExecutorHardware(host=f"host-{number}", managed_memory=64 << 20)
    place = (f"host-{number}:1/taskexecutor", "")
    program = Program(version, "p")
    return TaskExecutorOverview(ResourceId(f"{number:032x}"), *place, 2, 1, NOW_MS - 500, hardware, program)


def snapshot(jobs=(), workers=(), used=None, own=None, job_managers=()):
    executors = TaskExecutorList(tuple(workers))
    return Snapshot(NOW_MS, JobList(tuple(jobs)), executors, used or {}, own or {}, job_managers)
