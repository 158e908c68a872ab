"""Metrics by OTLP: a real receiver of HTTP reads with the messages of the standard what ``/metrics`` tells."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from engine.config.loader import configuration_from_texts
from engine.entrypoint.process_watch import ProcessWatch
from engine.errors import ConfigurationError
from engine.insight.cluster_events import ClusterEvents
from engine.rest.cluster_families import event_families
from engine.rest.opentelemetry_export import metrics_data, name_and_unit
from engine.rest.otlp_sender import otlp_sender, resource_of
from engine.rest.process_families import PROCESS_ROWS
from tests.entrypoint.monitoring import families

REQUESTS = {"/v1/metrics": ExportMetricsServiceRequest, "/v1/traces": ExportTraceServiceRequest}


class Receiver:
    """A receiver that keeps what it reads, refuses, or does not answer."""

    def __init__(self):
        self.heard, self.status, self.go_on = [], 200, Event()
        self.go_on.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.heard.append((self.path, dict(self.headers), REQUESTS[self.path].FromString(body)))
                receiver.go_on.wait(30)
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self):
        self.go_on.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


def settings(url, interval="50 ms"):
    return configuration_from_texts({"opentelemetry.endpoint": url, "opentelemetry.interval": interval})


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def watching(configuration, process="taskmanager-5f"):
    watch = ProcessWatch(configuration, [])
    watch.meter.add(lambda: {"Status.Tasks.SpilledBytes": 7.0})
    watch.export(process)
    watch.start()
    return watch


def metrics_of(request):
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    told = {each.key: each.value.string_value or each.value.int_value for each in resource.resource.attributes}
    return told, {metric.name: metric for metric in scope.metrics}


def test_a_process_exports_itself_with_the_headers_of_the_standards_variables(receiver, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hidden")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")

    async def body():
        watch = await watching(settings(receiver.url + "/"))
        await until(lambda: len(receiver.heard) > 1)
        await watch.stop()

    asyncio.run(body())
    path, headers, request = receiver.heard[-1]
    told, metrics = metrics_of(request)
    assert path == "/v1/metrics" and headers["authorization"] == "Bearer hidden"
    assert told["service.name"] == "drey-taskmanager" and told["deployment.environment.name"] == "test"
    assert told["service.instance.id"].startswith("taskmanager-5f@")
    assert "hidden" not in str(request), "no secret is among what is told"
    spilled = metrics["drey.process.spilled"]
    assert spilled.unit == "By" and spilled.sum.is_monotonic and spilled.sum.aggregation_temporality == 2
    (point,) = spilled.sum.data_points
    assert point.as_double == 7 and [(each.key, each.value.string_value) for each in point.attributes] == [
        ("process", "taskmanager-5f")
    ]
    assert point.start_time_unix_nano <= point.time_unix_nano
    assert metrics["process.memory.usage"].gauge.data_points[0].as_double > 1e6


def test_each_family_of_prometheus_is_exported_under_a_name_of_its_own():
    filled = [family for family in families() if family.samples]
    data = metrics_data(filled, resource_of("p"), 1, 2)
    (scope,) = data.resource_metrics[0].scope_metrics
    names = [metric.name for metric in scope.metrics]
    assert len(names) == len(set(names)) == len(filled) > len(PROCESS_ROWS)
    assert sum(name.startswith("drey.") for name in names) == len(names) - 6, "the others are those of the conventions"


@pytest.mark.parametrize(
    ("family", "name", "unit"),
    [
        ("drey_job_duration_seconds", "drey.job.duration", "s"),
        ("drey_oldest_waiting_job_seconds", "drey.oldest_waiting_job", "s"),
        ("drey_process_disk_free_bytes", "drey.process.disk_free", "By"),
        ("drey_jobs", "drey.jobs", ""),
        ("drey_process_cpu_seconds", "process.cpu.time", "s"),
    ],
)
def test_a_name_has_its_namespace_and_the_unit_stands_beside_it(family, name, unit):
    assert name_and_unit(family) == (name, unit)


def test_the_standards_way_back_to_prometheus_makes_the_names_of_the_board():
    units = {"By": "_bytes", "s": "_seconds", "": ""}
    for family in families():
        name, unit = name_and_unit(family.name)
        if name.startswith("drey."):
            assert name.replace(".", "_") + units[unit] == family.name


def test_a_histogram_has_counts_of_each_bucket_alone():
    events = ClusterEvents()
    for seconds in (0.5, 2.0, 2e9):
        events.job_ended("FAILED", seconds)
    data = metrics_data(event_families(events.counts, events.durations), resource_of("p"), 1, 2)
    (lengths,) = [
        each for each in data.resource_metrics[0].scope_metrics[0].metrics if each.name == "drey.job.duration"
    ]
    (failed,) = [point for point in lengths.data.data_points if point.attributes == {"state": "FAILED"}]
    assert failed.count == 3 and sum(failed.bucket_counts) == 3 and failed.bucket_counts[-1] == 1
    assert len(failed.bucket_counts) == len(failed.explicit_bounds) + 1 and failed.sum > 2e9


def test_a_receiver_that_is_not_there_is_told_once_and_one_that_comes_back_too(receiver, caplog):
    caplog.set_level(logging.INFO)
    receiver.status = 400

    async def body():
        watch = await watching(settings(receiver.url))
        await until(lambda: len(receiver.heard) > 2)
        receiver.status = 200
        await until(lambda: "taken again" in caplog.text)
        await watch.stop()

    asyncio.run(body())
    told = [record.getMessage() for record in caplog.records if "otlp" in record.name]
    assert len(told) == 2 and "400" in told[0], told


def test_a_receiver_that_does_not_answer_holds_nothing_up(receiver):
    receiver.go_on.clear()

    async def body():
        watch = await watching(settings(receiver.url))
        await until(lambda: receiver.heard)
        late_s = await asyncio.wait_for(turns(), 5)
        assert watch.meter.read()["Status.Tasks.SpilledBytes"] == 7
        await asyncio.wait_for(watch.stop(), 5)
        return late_s

    async def turns():
        """Return the longest turn of the loop while a request hangs."""
        longest_s = 0.0
        for _ in range(50):
            began_s = time.monotonic()
            await asyncio.sleep(0)
            longest_s = max(longest_s, time.monotonic() - began_s)
        return longest_s

    asyncio.run(body())
    assert len(receiver.heard) == 1, "one request at a time"


def test_what_is_missing_or_wrong_is_told_at_the_start(monkeypatch):
    def export(url):
        with ThreadPoolExecutor() as executor:
            return otlp_sender(settings(url), "metrics", executor)

    with pytest.raises(ConfigurationError, match="http://HOST:4318"):
        export("collector:4318")
    with pytest.raises(ConfigurationError, match="OTEL_EXPORTER_OTLP_HEADERS") as told:
        export("http://ada:hidden@collector:4318")
    assert "hidden" not in str(told.value)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'drey-engine\[opentelemetry\]'"):
        export("http://collector:4318")


def test_without_an_endpoint_or_against_a_variable_there_is_no_export(monkeypatch):
    with ThreadPoolExecutor() as executor:
        assert otlp_sender(configuration_from_texts({}), "metrics", executor) is None
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
        assert otlp_sender(settings("http://collector:4318"), "traces", executor) is None
