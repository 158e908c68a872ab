"""OpenTelemetryExport: the metrics of a process, pushed by OTLP over HTTP to ``opentelemetry.endpoint``.

    families as Prometheus reads them ─► metrics_data() ─► exporter of the SDK ─► POST <endpoint>/v1/metrics

Each process exports itself, the leader the cluster and its running jobs as well. A name and its unit are such that a
receiver which makes names of Prometheus' of them makes the name at ``/metrics`` again, so that alerts stay as they are;
where the semantic conventions have a name, it is that one.

Held by: tests/rest/test_opentelemetry_export.py
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from prometheus_client.metrics_core import Metric

from engine import __version__
from engine.rest.otlp_sender import OtlpSender

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


class OpenTelemetryExport:
    """The export of one process. Thread: the event loop."""

    def __init__(self, sender: OtlpSender, resource: Resource, interval_s: float, collect: Collect) -> None:
        self._sender, self._resource, self._interval_s, self._collect = sender, resource, interval_s, collect
        self._begin_ns = time.time_ns()

    async def run(self) -> None:
        """Export now and after each interval, until it is cancelled."""
        try:
            while True:
                try:
                    families = await self._collect()
                except Exception:  # such as a question of a leader to a component that ends
                    _log.exception("OpenTelemetry: metrics of this moment are missing")
                else:
                    make = partial(metrics_data, families, self._resource, self._begin_ns, time.time_ns())
                    await self._sender.send(make)
                await asyncio.sleep(self._interval_s)
        finally:
            self._sender.close()


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
