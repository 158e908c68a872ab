"""Metrics of a cluster and its running jobs as families of Prometheus; pure functions of what the components answer.

    JobList, TaskExecutorList, [JobProgress], ClusterEvents  ─►  drey_taskmanagers, drey_jobs{state}, ...

Families of a job carry its id and its name and are there while it runs. What has happened since the process that leads
began (ends, restarts, losses) is counted by it, whatever becomes of the jobs.

Held by: tests/rest/test_prometheus_routes.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from engine.gateways.messages import JobList, JobProgress
from engine.gateways.task_executors import TaskExecutorList
from engine.graph.deployment import store_totals
from engine.insight.cluster_events import BOUNDS_S, ClusterEvent, JobDurations
from engine.rest.job_document import JOB_STATES

_EVENTS = {
    ClusterEvent.JOB_RESTARTED: ("drey_job_restarts", "Restarts of parts of jobs after failures."),
    ClusterEvent.ATTEMPT_FAILED: ("drey_failed_attempts", "Attempts of tasks that failed, as TaskManagers report."),
    ClusterEvent.TASK_MANAGER_LOST: ("drey_taskmanagers_lost", "TaskManagers that were lost; not those that left."),
}


def cluster_families(jobs: JobList, registered: TaskExecutorList, now_ms: int) -> Sequence[Metric]:
    """Return the families of slots, TaskManagers, jobs and the queue."""
    executors = registered.task_executors
    count = GaugeMetricFamily("drey_taskmanagers", "TaskManagers that are registered.", value=len(executors))
    slots = GaugeMetricFamily("drey_slots", "Slots of the cluster.", labels=["state"])
    free = sum(each.free_slot_count for each in executors)
    slots.add_metric(["free"], free)
    slots.add_metric(["used"], sum(each.slot_count for each in executors) - free)
    states = Counter(job.status for job in jobs.jobs)
    by_state = GaugeMetricFamily("drey_jobs", "Jobs that are known, by state.", labels=["state"])
    for state in JOB_STATES:
        by_state.add_metric([state], states[state])
    age = GaugeMetricFamily(
        "drey_taskmanager_heartbeat_age_seconds",
        "Time since a TaskManager was last heard of.",
        labels=["taskmanager", "host"],
    )
    for each in executors:
        age.add_metric([each.resource_id.value, each.hardware.host], max(0, now_ms - each.seen_ms) / 1000)
    return (count, slots, by_state, age, *_queue_families(jobs, now_ms))


def _queue_families(jobs: JobList, now_ms: int) -> Sequence[Metric]:
    waiting = [job for job in jobs.jobs if job.waiting is not None]
    oldest_ms = max((now_ms - job.start_ms for job in waiting), default=0)
    by_reason = Counter(job.waiting.reason.value for job in waiting if job.waiting is not None)
    count = GaugeMetricFamily("drey_waiting_jobs", "Jobs that wait for slots, by reason.", labels=["reason"])
    for reason in ("SLOTS", "LIMIT", "CLUSTER"):
        count.add_metric([reason], by_reason[reason])
    text = "Time since the submission of the job that has waited longest; 0: none waits."
    age = GaugeMetricFamily("drey_oldest_waiting_job_seconds", text, value=max(0, oldest_ms) / 1000)
    return count, age


def event_families(counts: Mapping[ClusterEvent, int], durations: Mapping[str, JobDurations]) -> Sequence[Metric]:
    """Return the families of what has happened since this process began."""
    counters = [CounterMetricFamily(*_EVENTS[event], value=count) for event, count in counts.items()]
    lengths = HistogramMetricFamily("drey_job_duration_seconds", "Durations of ended jobs.", labels=["state"])
    for status, each in durations.items():
        sums = accumulate(each.counts)
        bounds = [*(str(bound) for bound in BOUNDS_S), "+Inf"]
        lengths.add_metric([status], list(zip(bounds, sums, strict=True)), each.total_s)
    return (*counters, lengths)


def job_families(jobs: Iterable[JobProgress]) -> Sequence[Metric]:
    """Return the families of running jobs."""
    labels = ["job_id", "job"]
    rows = CounterMetricFamily("drey_job_rows", "Rows that tasks took and gave.", labels=[*labels, "direction"])
    size = CounterMetricFamily("drey_job_bytes", "Bytes that tasks took and gave.", labels=[*labels, "direction"])
    spilled = CounterMetricFamily("drey_job_spilled_bytes", "Bytes that tasks spilled.", labels=labels)
    functions = CounterMetricFamily(
        "drey_job_function_seconds", "Processor time of Python functions, of attempts that ended.", labels=labels
    )
    requests = CounterMetricFamily("drey_job_store_requests", "Requests to stores.", labels=[*labels, "store"])
    traffic = CounterMetricFamily(
        "drey_job_store_bytes", "Bytes from and to stores.", labels=[*labels, "store", "direction"]
    )
    for job in jobs:
        counters = [vertex.counters for vertex in job.vertices]
        names = [job.job_id.value, job.name]
        rows.add_metric([*names, "in"], sum(each.rows_in for each in counters))
        rows.add_metric([*names, "out"], sum(each.rows_out for each in counters))
        size.add_metric([*names, "in"], sum(each.bytes_in for each in counters))
        size.add_metric([*names, "out"], sum(each.bytes_out for each in counters))
        spilled.add_metric(names, sum(each.spilled_bytes for each in counters))
        functions.add_metric(names, sum(one.function_us for each in counters for one in each.operators) / 1e6)
        for store, (count, read, written) in store_totals(each.stores for each in counters).items():
            requests.add_metric([*names, store], count)
            traffic.add_metric([*names, store, "in"], read)
            traffic.add_metric([*names, store, "out"], written)
    return (rows, size, spilled, functions, requests, traffic)
