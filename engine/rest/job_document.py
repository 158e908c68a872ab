"""A job as documents under Flink's names, made from JobDetails. Pure.

    job_document ── vertices ── vertex_metrics              /jobs/{job_id}
    plan_document                                           its ``plan``, and /jobs/{job_id}/plan
    exceptions_document, result_document, ...               its other pages

A field of Flink's that means nothing here has the value that says so: 0, -1, "" or an empty list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from engine.gateways.job_details import AttemptDetails, JobDetails, JobFailure, VertexDetails
from engine.gateways.job_queue import WaitingJob, waiting_text
from engine.graph.deployment import failure_text, store_totals
from engine.graph.job_graph import USER_KEY

#: job states in Flink's order
JOB_STATES = (
    "INITIALIZING",
    "CREATED",
    "RUNNING",
    "FAILING",
    "FAILED",
    "CANCELLING",
    "CANCELED",
    "FINISHED",
    "RESTARTING",
    "SUSPENDED",
    "RECONCILING",
)
ENDED_JOB_STATES = frozenset({"FINISHED", "FAILED", "CANCELED", "SUSPENDED"})
EXECUTION_STATES = (
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
    "INITIALIZING",
)
ENDED_EXECUTION_STATES = frozenset({"FINISHED", "CANCELED", "FAILED"})
_RESULT_NAMES = {"FINISHED": "SUCCEEDED", "FAILED": "FAILED", "CANCELED": "CANCELED"}


def duration_ms(start_ms: int, end_ms: int, now_ms: int) -> int:
    """Return the duration in milliseconds; -1 when it has not begun."""
    if start_ms < 0:
        return -1
    return max(0, (now_ms if end_ms < 0 else end_ms) - start_ms)


def state_counts(attempts: Iterable[AttemptDetails]) -> dict[str, int]:
    """Return the number of attempts in each state, every state named."""
    counts = Counter(attempt.state for attempt in attempts)
    return {state: counts[state] for state in EXECUTION_STATES}


def job_document(job: JobDetails, now_ms: int) -> dict[str, object]:
    """Return ``/jobs/{job_id}``."""
    statuses = Counter(vertex.status for vertex in job.vertices)
    return {
        "jid": job.job_id.value,
        "name": job.name,
        "user": job.configuration.get(USER_KEY, ""),
        "isStoppable": False,
        "state": job.status,
        "job-type": "BATCH",
        "schedulerType": "Default",
        "start-time": job.start_ms,
        "end-time": job.end_ms,
        "duration": duration_ms(job.start_ms, job.end_ms, now_ms),
        "maxParallelism": max((vertex.max_parallelism for vertex in job.vertices), default=-1),
        "now": now_ms,
        "timestamps": {state: job.timestamps_ms.get(state, 0) for state in JOB_STATES},
        "vertices": [vertex_line(vertex, now_ms) for vertex in job.vertices],
        "status-counts": {state: statuses[state] for state in EXECUTION_STATES},
        "plan": plan_document(job),
        "decisions": [decision.text for decision in job.decisions],
        "stores": _stores(job),
        "pending-operators": 0,
        "waiting": waiting_document(job.waiting),
    }


def _stores(job: JobDetails) -> dict[str, dict[str, int]]:
    """Return requests and bytes of plan, tasks and publication by store. Flink has no such field."""
    tasks = (attempt.counters.stores for vertex in job.vertices for attempt in vertex.subtasks)
    totals = store_totals([job.stores, *tasks])
    return {
        store: {"requests": requests, "read-bytes": read, "write-bytes": written}
        for store, (requests, read, written) in sorted(totals.items())
    }


def waiting_document(waiting: WaitingJob | None) -> dict[str, object] | None:
    """Return the place of a job in the queue for slots; None when it does not wait. Flink has no such field."""
    if waiting is None:
        return None
    return {
        "place": waiting.place,
        "jobs-waiting": waiting.count,
        "slots-needed": waiting.slots_needed,
        "slots-total": waiting.slots_total,
        "reason": waiting.reason.value,
        "priority": waiting.priority,
        "text": waiting_text(waiting),
    }


def vertex_line(vertex: VertexDetails, now_ms: int) -> dict[str, object]:
    """Return a vertex as ``/jobs/{job_id}`` shows it."""
    return {
        "id": vertex.id,
        "slotSharingGroupId": "0" * 32,
        "name": vertex.name,
        "maxParallelism": vertex.max_parallelism,
        "parallelism": vertex.parallelism,
        "status": vertex.status,
        "start-time": vertex.start_ms,
        "end-time": vertex.end_ms,
        "duration": duration_ms(vertex.start_ms, vertex.end_ms, now_ms),
        "tasks": state_counts(vertex.subtasks),
        "metrics": metrics(vertex.subtasks),
    }


def metrics(attempts: Iterable[AttemptDetails]) -> dict[str, object]:
    """Return the sums over attempts; those of an attempt that has ended are complete."""
    listed = list(attempts)
    counters = [attempt.counters for attempt in listed]
    stores = store_totals(each.stores for each in counters).values()
    is_complete = bool(listed) and all(attempt.state in ENDED_EXECUTION_STATES for attempt in listed)
    return {
        "read-bytes": sum(each.bytes_in for each in counters),
        "read-bytes-complete": is_complete,
        "write-bytes": sum(each.bytes_out for each in counters),
        "write-bytes-complete": is_complete,
        "read-records": sum(each.rows_in for each in counters),
        "read-records-complete": is_complete,
        "write-records": sum(each.rows_out for each in counters),
        "write-records-complete": is_complete,
        "accumulated-backpressured-time": sum(each.back_pressured_ms for each in counters),
        "accumulated-idle-time": sum(each.idle_ms for each in counters),
        "accumulated-busy-time": float(sum(busy_ms(attempt) for attempt in listed)),
        "spilled-bytes": sum(each.spilled_bytes for each in counters),
        "managed-bytes-peak": max((each.managed_bytes_peak for each in counters), default=0),
        "network-buffers-peak": max((each.network_buffers_peak for each in counters), default=0),
        "arrow-bytes-peak": max((each.arrow_bytes_peak for each in counters), default=0),
        "worker-bytes-peak": max((each.worker_bytes_peak for each in counters), default=0),
        "bad-records": sum(each.bad_rows for each in counters),
        "store-requests": sum(counts[0] for counts in stores),
        "store-read-bytes": sum(counts[1] for counts in stores),
        "store-write-bytes": sum(counts[2] for counts in stores),
    }


def busy_ms(attempt: AttemptDetails) -> int:
    """Return the time in which an attempt that has ended neither waited for input nor for room; 0 while it runs."""
    began_ms = attempt.timestamps_ms.get("RUNNING", -1)
    if began_ms < 0 or attempt.end_ms < 0:
        return 0
    waited_ms = attempt.counters.back_pressured_ms + attempt.counters.idle_ms
    return max(0, attempt.end_ms - began_ms - waited_ms)


def plan_document(job: JobDetails) -> dict[str, object]:
    """Return the plan: a node for each vertex, with what it reads and how that travels."""
    return {
        "jid": job.job_id.value,
        "name": job.name,
        "type": "BATCH",
        "nodes": [
            {
                "id": vertex.id,
                "parallelism": vertex.parallelism,
                "operator": "",
                "operator_strategy": "",
                "description": vertex.name,
                "inputs": [
                    {
                        "num": number,
                        "id": each.vertex,
                        "ship_strategy": each.ship_strategy,
                        "exchange": each.exchange.lower(),
                    }
                    for number, each in enumerate(vertex.inputs)
                ],
                "optimizer_properties": {},
            }
            for vertex in job.vertices
        ],
    }


def exceptions_document(failures: Iterable[JobFailure], *, is_truncated: bool, limit: int) -> dict[str, object]:
    """Return ``/jobs/{job_id}/exceptions``: the latest failures first, at most ``limit``."""
    listed = list(failures)
    shown = listed[:limit]
    root = shown[0] if shown else None
    truncated = is_truncated or len(listed) > len(shown)
    return {
        "root-exception": None if root is None else failure_text(root.failure),
        "timestamp": None if root is None else root.time_ms,
        "all-exceptions": [
            {
                "exception": failure_text(each.failure),
                "task": each.failure.task,
                "location": each.failure.task_manager,
                "timestamp": each.time_ms,
                "taskManagerId": each.failure.task_manager,
            }
            for each in shown
        ],
        "truncated": truncated,
        "exceptionHistory": {
            "entries": [
                {
                    "exceptionName": each.failure.type_name,
                    "stacktrace": failure_text(each.failure),
                    "timestamp": each.time_ms,
                    "failureLabels": {"retryable": str(each.failure.retryable).lower()},
                    "taskName": each.failure.task or None,
                    "endpoint": each.failure.task_manager or None,
                    "location": each.failure.task_manager or None,
                    "taskManagerId": each.failure.task_manager or None,
                    "concurrentExceptions": [],
                }
                for each in shown
            ],
            "truncated": truncated,
        },
    }


def result_document(job: JobDetails) -> dict[str, object]:
    """Return ``/jobs/{job_id}/execution-result``."""
    if job.status not in ENDED_JOB_STATES:
        return {"status": {"id": "IN_PROGRESS"}}
    failed = job.failures[0].failure if job.status == "FAILED" and job.failures else None
    cause = None
    if failed is not None:
        cause = {"class": failed.type_name, "stack-trace": failure_text(failed), "serialized-throwable": ""}
    return {
        "status": {"id": "COMPLETED"},
        "job-execution-result": {
            "id": job.job_id.value,
            "name": job.name,
            "application-status": _RESULT_NAMES.get(job.status, "UNKNOWN"),
            "accumulator-results": {},
            "net-runtime": duration_ms(job.start_ms, job.end_ms, job.end_ms),
            **({"failure-cause": cause} if cause is not None else {}),
        },
    }


def accumulators(attempts: Iterable[AttemptDetails]) -> list[dict[str, object]]:
    """Return the counters of functions, summed over attempts."""
    totals: Counter[str] = Counter()
    for attempt in attempts:
        totals.update(attempt.counters.functions)
    return [{"name": name, "type": "LongCounter", "value": str(totals[name])} for name in sorted(totals)]
