"""Metrics for Prometheus: GET /metrics.

    drey_taskmanagers  drey_slots{state}  drey_jobs{state}
    drey_job_rows_total{job_id, job, direction}  drey_job_bytes_total  drey_job_spilled_bytes_total    of running jobs
    drey_refused_requests_total{process, reason}
    drey_process_*{process}                                              the JobManager and every TaskManager

Made on request from what the components know: nothing is counted only for this.

Held by: tests/rest/test_descriptions.py
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from engine.errors import EngineError
from engine.gateways.insight import RequestProcessMetrics
from engine.gateways.messages import JobList, JobProgress, ListJobs, RequestJobProgress
from engine.gateways.task_executors import ListTaskExecutors, TaskExecutorList, TaskExecutorOverview
from engine.ids import JobId
from engine.insight.process_metrics import REFUSED, process_metrics
from engine.rest.job_document import ENDED_JOB_STATES, JOB_STATES
from engine.rest.services import RestServices
from engine.rest.taskmanager_routes import insight_gateway
from engine.rpc.http_messages import Access, HttpRequest, HttpResponse, Route

_ANSWER_S = 5.0
_PROCESS_GAUGES = {
    "resident_memory_bytes": "Status.Process.Memory.Resident",
    "virtual_memory_bytes": "Status.Process.Memory.Virtual",
    "threads": "Status.Process.Threads.Count",
    "open_fds": "Status.Process.FileDescriptors.Count",
    "uptime_seconds": "Status.Process.Uptime",
}


class _Gathered(Collector):
    """The metrics of one scrape."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        return self._metrics


def prometheus_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def metrics(_: HttpRequest) -> HttpResponse:
        jobs = await services.ask_dispatcher(ListJobs())
        registered = await services.ask_resource_manager(ListTaskExecutors())
        running = [job.job_id for job in jobs.jobs if job.status not in ENDED_JOB_STATES]
        progress = [found for found in await asyncio.gather(*(_progress(services, each) for each in running)) if found]
        executors = registered.task_executors
        used = await asyncio.gather(*(_metrics_of(services, each) for each in executors))
        processes = {"jobmanager": process_metrics()}
        processes.update(
            {f"taskmanager-{each.resource_id}": found for each, found in zip(executors, used, strict=True)}
        )
        registry = CollectorRegistry(auto_describe=False)
        families = (*_cluster_families(jobs, registered), *_job_families(progress), *_process_families(processes))
        registry.register(_Gathered(families))
        return HttpResponse(body=generate_latest(registry), content_type=CONTENT_TYPE_LATEST)

    return (Route("GET", "/metrics", metrics, Access.OPEN_GET),)


async def _progress(services: RestServices, job_id: JobId) -> JobProgress | None:
    try:
        return await services.ask_dispatcher(RequestJobProgress(job_id), _ANSWER_S)
    except EngineError:
        return None  # it has ended meanwhile


async def _metrics_of(services: RestServices, executor: TaskExecutorOverview) -> dict[str, float]:
    try:
        return (await insight_gateway(services, executor).ask(RequestProcessMetrics(), _ANSWER_S)).values
    except EngineError:
        return {}  # it is going away


def _cluster_families(jobs: JobList, registered: TaskExecutorList) -> Sequence[Metric]:
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
    return (count, slots, by_state)


def _job_families(jobs: Iterable[JobProgress]) -> Sequence[Metric]:
    labels = ["job_id", "job"]
    rows = CounterMetricFamily("drey_job_rows", "Rows that tasks took and gave.", labels=[*labels, "direction"])
    size = CounterMetricFamily("drey_job_bytes", "Bytes that tasks took and gave.", labels=[*labels, "direction"])
    spilled = CounterMetricFamily("drey_job_spilled_bytes", "Bytes that tasks spilled.", labels=labels)
    for job in jobs:
        counters = [vertex.counters for vertex in job.vertices]
        names = [job.job_id.value, job.name]
        rows.add_metric([*names, "in"], sum(each.rows_in for each in counters))
        rows.add_metric([*names, "out"], sum(each.rows_out for each in counters))
        size.add_metric([*names, "in"], sum(each.bytes_in for each in counters))
        size.add_metric([*names, "out"], sum(each.bytes_out for each in counters))
        spilled.add_metric(names, sum(each.spilled_bytes for each in counters))
    return (rows, size, spilled)


def _process_families(processes: Mapping[str, Mapping[str, float]]) -> Sequence[Metric]:
    families: list[Metric] = []
    for name, source in _PROCESS_GAUGES.items():
        gauge = GaugeMetricFamily(f"drey_process_{name}", source, labels=["process"])
        for process, values in processes.items():
            if source in values:
                gauge.add_metric([process], values[source])
        families.append(gauge)
    seconds = CounterMetricFamily("drey_process_cpu_seconds", "Processor time.", labels=["process"])
    for process, values in processes.items():
        if "Status.Process.CPU.Time" in values:
            seconds.add_metric([process], values["Status.Process.CPU.Time"])
    refused = CounterMetricFamily(
        "drey_refused_requests", "Requests and data connections that were refused.", labels=["process", "reason"]
    )
    for process, values in processes.items():
        for name, value in values.items():
            if name.startswith(REFUSED):
                refused.add_metric([process, name.removeprefix(REFUSED)], value)
    return [*families, seconds, refused]
