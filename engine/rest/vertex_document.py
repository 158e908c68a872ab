"""A vertex of a job and its subtasks as documents under Flink's names, made from JobDetails. Pure.

Held by: tests/rest/test_job_detail_routes.py
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from engine.gateways.insight import TaskPressure
from engine.gateways.job_details import AttemptDetails, VertexDetails
from engine.graph.deployment import OperatorCounters, operator_totals
from engine.network_address import plain_host
from engine.rest.job_document import (
    ENDED_EXECUTION_STATES,
    EXECUTION_STATES,
    accumulators,
    duration_ms,
    metrics,
    state_counts,
)

#: shares of blocked samples above which back pressure is low, and high
LOW_RATIO = 0.1
HIGH_RATIO = 0.5


def vertex_document(vertex: VertexDetails, now_ms: int) -> dict[str, object]:
    """Return ``/jobs/{job_id}/vertices/{vertex_id}``."""
    return {
        **_named(vertex),
        "parallelism": vertex.parallelism,
        "maxParallelism": vertex.max_parallelism,
        "now": now_ms,
        "subtasks": [subtask_document(attempt, now_ms) for attempt in vertex.subtasks],
        "aggregated": _aggregated(vertex.subtasks),
        "operators": [
            _operator_document(each) for each in operator_totals(a.counters.operators for a in vertex.subtasks)
        ],
    }


def _operator_document(operator: OperatorCounters) -> dict[str, object]:
    """Return the sums of one operator over all subtasks; for the peak, the largest one."""
    return {
        "id": operator.node_id,
        "name": operator.name,
        "read-records": operator.rows_in,
        "write-records": operator.rows_out,
        "read-bytes": operator.bytes_in,
        "write-bytes": operator.bytes_out,
        "spilled-bytes": operator.spilled_bytes,
        "busy-time": operator.time_us / 1000,
        "function-time": operator.function_us / 1000,
        "managed-bytes": operator.managed_bytes,
        "managed-bytes-peak": operator.managed_bytes_peak,
        "pruned-row-groups": operator.pruned_groups,
        "filtered-rows": operator.filtered_rows,
    }


def subtask_document(attempt: AttemptDetails, now_ms: int) -> dict[str, object]:
    """Return one attempt of a subtask."""
    return {
        "subtask": attempt.index,
        "status": attempt.state,
        "attempt": attempt.attempt,
        "host": host_of(attempt.address),
        "endpoint": endpoint_of(attempt.address),
        "start-time": attempt.start_ms,
        "start_time": attempt.start_ms,
        "end-time": attempt.end_ms,
        "duration": duration_ms(attempt.start_ms, attempt.end_ms, now_ms),
        "metrics": metrics([attempt]),
        "taskmanager-id": attempt.task_manager,
        "status-duration": _status_durations(attempt, now_ms),
        "other-concurrent-attempts": None,
    }


def times_document(vertex: VertexDetails, now_ms: int) -> dict[str, object]:
    """Return ``.../subtasktimes``."""
    return {
        **_named(vertex),
        "now": now_ms,
        "subtasks": [
            {
                "subtask": attempt.index,
                "host": host_of(attempt.address),
                "endpoint": endpoint_of(attempt.address),
                "duration": duration_ms(attempt.start_ms, attempt.end_ms, now_ms),
                "timestamps": {state: attempt.timestamps_ms.get(state, 0) for state in EXECUTION_STATES},
            }
            for attempt in vertex.subtasks
        ],
    }


def taskmanagers_document(vertex: VertexDetails, now_ms: int) -> dict[str, object]:
    """Return ``.../taskmanagers``: the attempts of each TaskManager together."""
    by_executor: dict[tuple[str, str], list[AttemptDetails]] = {}
    for attempt in vertex.subtasks:
        by_executor.setdefault((attempt.task_manager, attempt.address), []).append(attempt)
    lines = []
    for (task_manager, address), attempts in sorted(by_executor.items()):
        starts = [attempt.start_ms for attempt in attempts if attempt.start_ms >= 0]
        start_ms = min(starts, default=-1)
        has_ended = all(attempt.end_ms >= 0 for attempt in attempts)
        end_ms = max(attempt.end_ms for attempt in attempts) if has_ended else -1
        lines.append(
            {
                "host": host_of(address),
                "endpoint": endpoint_of(address),
                "status": _status_together(attempts),
                "start-time": start_ms,
                "end-time": end_ms,
                "duration": duration_ms(start_ms, end_ms, now_ms),
                "metrics": metrics(attempts),
                "status-counts": state_counts(attempts),
                "taskmanager-id": task_manager,
                "aggregated": _aggregated(attempts),
            }
        )
    return {**_named(vertex), "now": now_ms, "taskmanagers": lines}


def accumulators_document(vertex: VertexDetails) -> dict[str, object]:
    """Return ``.../accumulators``: what functions counted."""
    return {"id": vertex.id, "user-accumulators": accumulators(vertex.subtasks)}


def subtask_accumulators_document(vertex: VertexDetails) -> dict[str, object]:
    """Return ``.../subtasks/accumulators``: what the functions of each subtask counted."""
    lines = [
        {
            "subtask": attempt.index,
            "attempt": attempt.attempt,
            "host": host_of(attempt.address),
            "user-accumulators": accumulators([attempt]),
        }
        for attempt in vertex.subtasks
    ]
    return {"id": vertex.id, "parallelism": vertex.parallelism, "subtasks": lines}


def metric_values(vertex: VertexDetails) -> dict[str, float]:
    """Return the numbers of every subtask: ``0.numRecordsIn``."""
    return {
        f"{attempt.index}.{name}": value
        for attempt in vertex.subtasks
        for name, value in subtask_metrics(attempt).items()
    }


def subtask_metrics(attempt: AttemptDetails) -> dict[str, float]:
    """Return the numbers of one attempt: ``numRecordsIn``, and of its operators by their names."""
    counters = attempt.counters
    numbers = {
        "numRecordsIn": counters.rows_in,
        "numRecordsOut": counters.rows_out,
        "numBytesIn": counters.bytes_in,
        "numBytesOut": counters.bytes_out,
        "numBytesSpilled": counters.spilled_bytes,
        "numBytesStored": counters.stored_bytes,
        "accumulatedBackPressuredTimeMs": counters.back_pressured_ms,
        "accumulatedIdleTimeMs": counters.idle_ms,
        "accumulatedOutputTimeMs": counters.output_us / 1000,
        "managedMemoryPeak": counters.managed_bytes_peak,
        "networkBuffersPeak": counters.network_buffers_peak,
        "arrowMemoryPeak": counters.arrow_bytes_peak,
        "pythonWorkerMemoryPeak": counters.worker_bytes_peak,
    }
    for operator in counters.operators:
        numbers[f"{operator.name}.numRecordsIn"] = operator.rows_in
        numbers[f"{operator.name}.numRecordsOut"] = operator.rows_out
        numbers[f"{operator.name}.numBytesIn"] = operator.bytes_in
        numbers[f"{operator.name}.numBytesOut"] = operator.bytes_out
        numbers[f"{operator.name}.numBytesSpilled"] = operator.spilled_bytes
        numbers[f"{operator.name}.busyTimeMs"] = operator.time_us / 1000
        numbers[f"{operator.name}.functionTimeMs"] = operator.function_us / 1000
        numbers[f"{operator.name}.managedMemoryPeak"] = operator.managed_bytes_peak
        numbers[f"{operator.name}.numRowGroupsPruned"] = operator.pruned_groups
        numbers[f"{operator.name}.numRowsFilteredAtRunTime"] = operator.filtered_rows
    return {name: float(value) for name, value in numbers.items()}


def pressure_level(ratio: float) -> str:
    """Return the level of back pressure: ok, low or high."""
    return "high" if ratio > HIGH_RATIO else "low" if ratio > LOW_RATIO else "ok"


def pressure_document(vertex: VertexDetails, sampled: Sequence[TaskPressure], now_ms: int) -> dict[str, object]:
    """Return ``.../backpressure`` of the attempts that were running; the vertex is as bad as its worst subtask."""
    lines = [
        {
            "subtask": each.attempt.subtask_index,
            "attempt-number": each.attempt.attempt_number,
            "backpressureLevel": pressure_level(each.back_pressured),
            "backpressure-level": pressure_level(each.back_pressured),
            "ratio": each.back_pressured,
            "busyRatio": each.busy,
            "idleRatio": each.idle,
            "other-concurrent-attempts": None,
        }
        for each in sorted(sampled, key=lambda each: each.attempt.subtask_index)
    ]
    level = pressure_level(max((each.back_pressured for each in sampled), default=0.0))
    return {
        "id": vertex.id,
        "status": "ok" if lines else "deprecated",
        "backpressureLevel": level,
        "backpressure-level": level,
        "end-timestamp": now_ms,
        "subtasks": lines,
    }


def host_of(address: str) -> str:
    """Return the host in ``host:port/name``."""
    return plain_host(endpoint_of(address).rpartition(":")[0]) or endpoint_of(address)


def endpoint_of(address: str) -> str:
    """Return ``host:port`` of ``host:port/name``; what is no such address stays as it is."""
    return address.rpartition("/")[0] or address


def _named(vertex: VertexDetails) -> dict[str, object]:
    return {"id": vertex.id, "name": vertex.name}


def _status_together(attempts: Sequence[AttemptDetails]) -> str:
    states = {attempt.state for attempt in attempts}
    order = ("FAILED", "CANCELING", "CANCELED", "RUNNING", "INITIALIZING", "DEPLOYING", "SCHEDULED", "CREATED")
    return next((state for state in order if state in states), "FINISHED")


def _status_durations(attempt: AttemptDetails, now_ms: int) -> dict[str, int]:
    """Return the time that an attempt spent in each state; -1 for states that it never had."""
    durations = dict.fromkeys(EXECUTION_STATES[:4] + EXECUTION_STATES[-1:], -1)
    entered = sorted(attempt.timestamps_ms.items(), key=lambda item: item[1])
    for (state, begin_ms), (_, end_ms) in pairwise([*entered, ("", now_ms)]):
        if state in durations and state not in ENDED_EXECUTION_STATES:
            durations[state] = max(0, end_ms - begin_ms)
    return durations


def _aggregated(attempts: Sequence[AttemptDetails]) -> dict[str, object]:
    """Return each number's least, largest, mean and sum over attempts."""
    each_metrics = [metrics([attempt]) for attempt in attempts]
    summary: dict[str, object] = {}
    for name, first in each_metrics[0].items() if each_metrics else ():
        if isinstance(first, bool):
            continue
        values = [float(str(one[name])) for one in each_metrics]
        summary[name] = {
            "min": min(values),
            "max": max(values),
            "avg": sum(values) / len(values),
            "sum": sum(values),
        }
    return {"metrics": summary, "status-duration": {}}
