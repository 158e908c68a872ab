"""Metrics for Prometheus: GET /metrics of every process.

    the leader       the cluster and its running jobs (cluster_families.py), itself and every TaskManager
                     (process_families.py); with ?processes=own of the processes only itself
    a standby        itself: whether it leads, its session at ZooKeeper, its memory
    others           itself: a TaskManager, a history server

Made on request from what the components know. One scrape of the leader has everything. Where Prometheus reads
TaskManagers themselves, it asks JobManagers with ``?processes=own``, so that nothing comes twice.

Held by: tests/rest/test_prometheus_routes.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from engine import __version__
from engine.errors import EngineError, ResourceError
from engine.gateways.insight import RequestProcessMetrics
from engine.gateways.messages import JobProgress, ListJobs, RequestJobProgress
from engine.gateways.protocol import protocol
from engine.gateways.task_executors import ListTaskExecutors, TaskExecutorOverview
from engine.ids import JobId
from engine.insight.cluster_events import CLUSTER_EVENTS
from engine.insight.process_meter import ProcessMeter
from engine.rest.cluster_families import cluster_families, event_families, job_families
from engine.rest.job_document import ENDED_JOB_STATES
from engine.rest.process_families import ProcessOf, process_families
from engine.rest.services import RestServices
from engine.rest.taskmanager_routes import insight_gateway
from engine.rpc.http_messages import Access, HttpError, HttpRequest, HttpResponse, Route

#: path of metrics: each process answers it itself, a standby too
METRICS_PATH = "/metrics"
#: seconds for which others are asked, at most
_ANSWER_S = 5.0
#: header with the time in which Prometheus wants its answer; a process that hangs takes half of it at most
_SCRAPE_HEADER = "X-Prometheus-Scrape-Timeout-Seconds"


class _Gathered(Collector):
    """The metrics of one scrape."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        return self._metrics


def prometheus_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def metrics(request: HttpRequest) -> HttpResponse:
        wanted = request.query.get("processes", "all")
        if wanted not in ("all", "own"):
            raise HttpError(400, f"processes={wanted[:20]}: choose from all, own")
        processes, families = await metrics_here(services, _patience_s(request), is_alone=wanted == "own")
        # Of a thousand processes it takes a second, in which the loop goes on.
        return await asyncio.to_thread(_answer, processes, families)

    return (Route("GET", METRICS_PATH, metrics, Access.OPEN_GET),)


async def families_here(services: RestServices) -> list[Metric]:
    """Return the families of this process where others have their own."""
    processes, families = await metrics_here(services)
    return [*families, *process_families(processes)]


async def metrics_here(
    services: RestServices, patience_s: float = _ANSWER_S, *, is_alone: bool = True
) -> tuple[list[ProcessOf], list[Metric]]:
    """Return this process and, where it leads, the cluster and its TaskManagers, unless it is alone."""
    own = _own("historyserver" if services.is_history else "jobmanager", services.meter)
    if services.is_history:
        return [own], []
    try:
        services.dispatcher()
    except ResourceError:  # another JobManager leads, or none
        return [own], []
    families, others = await _gathered(services, patience_s, is_alone=is_alone)
    return [own, *others], families


def process_metrics_route(process: str, meter: ProcessMeter) -> Route:
    """Return the route of a process that knows only itself."""

    async def metrics(_: HttpRequest) -> HttpResponse:
        return _answer([_own(process, meter)])

    return Route("GET", METRICS_PATH, metrics, Access.OPEN_GET)


def _patience_s(request: HttpRequest) -> float:
    try:
        wanted_s = float(request.headers.get(_SCRAPE_HEADER, ""))
    except ValueError:
        return _ANSWER_S
    return min(wanted_s / 2, _ANSWER_S) if wanted_s > 0 else _ANSWER_S


async def _gathered(
    services: RestServices, patience_s: float, *, is_alone: bool
) -> tuple[list[Metric], list[ProcessOf]]:
    """Return the families of the cluster, and the TaskManagers."""
    jobs = await services.ask_dispatcher(ListJobs())
    registered = await services.ask_resource_manager(ListTaskExecutors())
    running = [job.job_id for job in jobs.jobs if job.status not in ENDED_JOB_STATES]
    executors = () if is_alone else registered.task_executors
    progress, others = await asyncio.gather(
        asyncio.gather(*(_progress(services, each, patience_s) for each in running)),
        asyncio.gather(*(_process_of(services, each, patience_s) for each in executors)),
    )
    families = [
        *cluster_families(jobs, registered, services.clock.wall_ms()),
        *event_families(CLUSTER_EVENTS.counts, CLUSTER_EVENTS.durations),
        *job_families(found for found in progress if found is not None),
    ]
    return families, others


async def own_families(name: str, meter: ProcessMeter) -> Sequence[Metric]:
    """Return the families of a process that knows only itself."""
    return process_families([_own(name, meter)])


def _own(name: str, meter: ProcessMeter) -> ProcessOf:
    return ProcessOf(name, __version__, protocol(), meter.read())


async def _progress(services: RestServices, job_id: JobId, patience_s: float) -> JobProgress | None:
    try:
        return await services.ask_dispatcher(RequestJobProgress(job_id), patience_s)
    except EngineError:
        return None  # it has ended meanwhile


async def _process_of(services: RestServices, executor: TaskExecutorOverview, patience_s: float) -> ProcessOf:
    try:
        values = (await insight_gateway(services, executor).ask(RequestProcessMetrics(), patience_s)).values
    except EngineError:
        values = {}  # it is going away
    return ProcessOf(f"taskmanager-{executor.resource_id}", executor.program.version, executor.program.protocol, values)


def _answer(processes: Sequence[ProcessOf], families: Iterable[Metric] = ()) -> HttpResponse:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Gathered((*families, *process_families(processes))))
    return HttpResponse(body=generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
