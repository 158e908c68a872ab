"""OpenTelemetryExport: the metrics of a process, pushed by OTLP over HTTP to ``opentelemetry.endpoint``.

    families as Prometheus reads them ─► metrics_data() ─► exporter of the SDK ─► POST <endpoint>/v1/metrics

Each process exports itself, the leader the cluster and its running jobs as well. A name and its unit are such that a
receiver which makes names of Prometheus' of them makes the name at ``/metrics`` again, so that alerts stay as they are;
where the semantic conventions have a name, it is that one. Headers, certificates, the time limit and attributes of the
resource are the standard's variables: OTEL_EXPORTER_OTLP_HEADERS, OTEL_RESOURCE_ATTRIBUTES and so on.

A receiver that is not there, or hangs, holds one thread, and nothing waits for it. The log tells it once.

Held by: tests/rest/test_opentelemetry_export.py
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from prometheus_client.metrics_core import Metric

from engine import __version__
from engine.config.loader import Configuration
from engine.config.operating_options import OPENTELEMETRY_ENDPOINT, OPENTELEMETRY_INTERVAL
from engine.errors import ConfigurationError

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData
    from opentelemetry.sdk.resources import Resource

_log = logging.getLogger(__name__)

#: names and units of the semantic conventions for processes
_CONVENTIONS = {
    "drey_process_cpu_seconds": ("process.cpu.time", "s"),
    "drey_process_resident_memory_bytes": ("process.memory.usage", "By"),
    "drey_process_virtual_memory_bytes": ("process.memory.virtual", "By"),
    "drey_process_threads": ("process.thread.count", "{thread}"),
    "drey_process_open_fds": ("process.unix.file_descriptor.count", "{file_descriptor}"),
    "drey_process_uptime_seconds": ("process.uptime", "s"),
}
_UNITS = {"_seconds": "s", "_bytes": "By"}
#: beginnings of names that are namespaces
_NAMESPACES = re.compile("^drey_(process|job|taskmanager|zookeeper|flight_sql)_")

#: function that returns the families of this moment
Collect = Callable[[], Awaitable[Iterable[Metric]]]


def opentelemetry_export(
    configuration: Configuration, process: str, collect: Collect, executor: Executor
) -> OpenTelemetryExport | None:
    """Return the export of a process; None where none is configured.

    Raises: ConfigurationError where the package is missing or the endpoint is no URL.
    """
    endpoint = configuration.get(OPENTELEMETRY_ENDPOINT)
    if endpoint is None:
        return None
    key, parts = OPENTELEMETRY_ENDPOINT.key, urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{key} has to be http://HOST:4318 or https://HOST:4318")
    if parts.username or parts.password or parts.query:
        raise ConfigurationError(f"{key} is told in logs: write credentials to OTEL_EXPORTER_OTLP_HEADERS")
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        exporter = OTLPMetricExporter(endpoint=f"{endpoint.rstrip('/')}/v1/metrics")
        resource = resource_of(process)
    except ImportError as error:
        raise ConfigurationError(f"{key} needs the extra: pip install 'drey-engine[opentelemetry]' ({error})") from None
    interval_s = configuration.get(OPENTELEMETRY_INTERVAL) / 1000
    return OpenTelemetryExport(exporter, resource, interval_s, collect, executor)


class OpenTelemetryExport:
    """The export of one process. Thread: the event loop; requests are made in the executor, one at a time."""

    def __init__(
        self, exporter: Any, resource: Resource, interval_s: float, collect: Collect, executor: Executor
    ) -> None:
        self._exporter, self._resource, self._interval_s = exporter, resource, interval_s
        self._collect, self._executor = collect, executor
        self._begin_ns = time.time_ns()
        self._said = _Said()
        #: flag: the last request was not taken
        self._is_failing = False
        logging.getLogger(type(exporter).__module__).addFilter(self._said)

    async def run(self) -> None:
        """Export now and after each interval, until it is cancelled."""
        from opentelemetry.sdk.metrics.export import MetricExportResult

        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    data = metrics_data(await self._collect(), self._resource, self._begin_ns, time.time_ns())
                    done = await loop.run_in_executor(self._executor, self._exporter.export, data)
                    self._tell(is_failing=done is not MetricExportResult.SUCCESS)
                except Exception as error:  # the export is beside the work of the process
                    self._said.text = f"{type(error).__name__}: {error}"
                    self._tell(is_failing=True)
                await asyncio.sleep(self._interval_s)
        finally:
            logging.getLogger(type(self._exporter).__module__).removeFilter(self._said)
            self._exporter.shutdown()

    def _tell(self, *, is_failing: bool) -> None:
        if is_failing and not self._is_failing:
            _log.warning("OpenTelemetry: metrics are not exported until further notice: %s", self._said.text)
        elif self._is_failing and not is_failing:
            _log.info("OpenTelemetry: metrics are exported again")
        self._is_failing = is_failing


class _Said(logging.Filter):
    """Text of the SDK about the last failure: kept, since the SDK logs each request anew."""

    text = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the text."""
        if record.levelno >= logging.ERROR or not self.text:
            self.text = record.getMessage()
        return False


def resource_of(process: str) -> Resource:
    """Return the attributes of a process; those of the standard's variables win."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    told: dict[str, Any] = {
        "service.namespace": "drey",
        "service.name": f"drey-{process.partition('-')[0] if process.startswith('taskmanager-') else process}",
        "service.instance.id": f"{process}@{os.uname().nodename}:{os.getpid()}",
        "service.version": __version__,
        "host.name": os.uname().nodename,
        "process.pid": os.getpid(),
    }
    return Resource(told).merge(OTELResourceDetector().detect())


def metrics_data(families: Iterable[Metric], resource: Resource, begin_ns: int, now_ns: int) -> MetricsData:
    """Return families as the SDK takes them."""
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    metrics = [_metric(family, begin_ns, now_ns) for family in families if family.samples]
    scope = ScopeMetrics(InstrumentationScope("drey", __version__), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def name_and_unit(family: str) -> tuple[str, str]:
    """Return the name of a family in OpenTelemetry: ``drey_job_spilled_bytes`` is ``drey.job.spilled`` in ``By``."""
    if family in _CONVENTIONS:
        return _CONVENTIONS[family]
    dotted = _NAMESPACES.sub(r"drey_\1.", family).replace("drey_", "drey.", 1)
    for ending, unit in _UNITS.items():
        if dotted.endswith(ending):
            return dotted.removesuffix(ending), unit
    return dotted, ""


def _metric(family: Metric, begin_ns: int, now_ns: int) -> Any:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, Histogram, NumberDataPoint, Sum
    from opentelemetry.sdk.metrics.export import Metric as SdkMetric

    points = [NumberDataPoint(each.labels, begin_ns, now_ns, each.value) for each in family.samples]
    data: Any
    if family.type == "histogram":
        data = Histogram(_histogram_points(family, begin_ns, now_ns), AggregationTemporality.CUMULATIVE)
    elif family.type == "counter":
        data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
    else:
        data = Gauge(points)
    name, unit = name_and_unit(family.name)
    return SdkMetric(name, family.documentation, unit, data)


def _histogram_points(family: Metric, begin_ns: int, now_ns: int) -> list[Any]:
    """Return a point for each set of labels; Prometheus' buckets hold those below them, too."""
    from opentelemetry.sdk.metrics.export import HistogramDataPoint

    found: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for each in family.samples:
        labels = tuple(sorted((name, value) for name, value in each.labels.items() if name != "le"))
        place = each.labels.get("le", each.name.removeprefix(f"{family.name}_"))
        found.setdefault(labels, {})[place] = each.value
    points: list[Any] = []
    unknown: Any = None
    for labels, values in found.items():
        total, count = values.pop("sum"), int(values.pop("count"))
        sums = [0, *(int(value) for value in values.values())]
        counts = [high - low for low, high in pairwise(sums)]
        bounds = [float(bound) for bound in values if bound != "+Inf"]
        points.append(
            HistogramDataPoint(dict(labels), begin_ns, now_ns, count, total, counts, bounds, unknown, unknown)
        )
    return points
