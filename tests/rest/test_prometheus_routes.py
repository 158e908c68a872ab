"""GET /metrics: what the components know, as Prometheus reads it."""

from __future__ import annotations

import asyncio
import dataclasses
import threading

from prometheus_client.parser import text_string_to_metric_families

from engine import __version__
from engine.errors import ResourceError
from engine.gateways.insight import RequestProcessMetrics
from engine.gateways.job_queue import WaitingJob, WaitingReason
from engine.gateways.messages import JobList, JobOverview, JobProgress, VertexProgress
from engine.gateways.protocol import protocol
from engine.gateways.task_executors import TaskExecutorList
from engine.graph.deployment import OperatorCounters, TaskCounters
from engine.ids import JobId
from engine.insight.cluster_events import ClusterEvent, ClusterEvents
from engine.insight.process_meter import ProcessMeter
from engine.rest.cluster_families import cluster_families, event_families, job_families
from engine.rest.process_families import PROCESS_ROWS, ProcessOf, process_families
from engine.rest.prometheus_routes import process_metrics_route, prometheus_routes
from engine.rpc.http_messages import HttpRequest
from tests.jobmaster.job_graphs import job_graph
from tests.rest.rest_world import RestWorld, scenario, until


def samples_of(families):
    """Return values by name and labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples
    }


def test_metrics_can_be_read_by_prometheus():
    async def body(world):
        release = threading.Event()

        def work(task):
            task.rows = 41
            assert release.wait(30)

        world.cluster.resources[0].bodies["scan"] = work
        await world.run(job_graph([1]))
        graph = job_graph([1], names=["scan"], name='a "quoted"\nname\\')
        await world.submit(graph)

        async def samples():
            families = text_string_to_metric_families(await world.get("/metrics"))
            found = {
                (sample.name, frozenset(sample.labels.values())): sample.value
                for family in families
                for sample in family.samples
            }
            rows = found.get(("drey_job_rows_total", frozenset({graph.job_id.value, 'a "quoted"\nname\\', "in"})))
            return found if rows == 41 else None

        try:
            found = await until(samples)
        finally:
            release.set()
        executor = world.cluster.task_executors[0].resource_id
        values = {
            ("drey_taskmanagers", ""): 1,
            ("drey_slots", "used"): 1,
            ("drey_slots", "free"): 1,
            ("drey_jobs", "FINISHED"): 1,
            ("drey_jobs", "RUNNING"): 1,
        }
        for (name, label), value in values.items():
            assert found[name, frozenset({label} if label else ())] == value
        for process in ("jobmanager", f"taskmanager-{executor}"):
            assert found["drey_process_threads", frozenset({process})] > 0
        assert found["drey_build_info", frozenset({"jobmanager", __version__, protocol()})] == 1
        assert found["drey_waiting_jobs", frozenset({"SLOTS"})] == 0
        assert found["drey_oldest_waiting_job_seconds", frozenset()] == 0
        assert found["drey_taskmanager_heartbeat_age_seconds", frozenset({executor.value, ""})] >= 0

    scenario(body)


def test_the_leader_tells_of_itself_alone_where_task_managers_are_asked_themselves():
    async def body(world):
        await until(lambda: _has_slots(world))
        whole = await world.get("/metrics")
        own = await world.get("/metrics?processes=own")
        assert 'process="taskmanager-' in whole and 'process="taskmanager-' not in own
        assert "drey_taskmanagers 1.0" in own
        assert "choose from all, own" in (await world.get("/metrics?processes=some", 400))["errors"][0]

    async def _has_slots(world):
        return (await world.get("/overview"))["slots-total"]

    scenario(body)


def test_a_process_that_does_not_lead_tells_of_itself():
    def nobody_leads():
        raise ResourceError("this JobManager does not lead")

    async def body(world: RestWorld):
        meter = ProcessMeter(lambda: {"Status.Leader.Leads": 0.0, "Status.Leader.Epoch": 7.0})
        services = dataclasses.replace(world.services, dispatcher=nobody_leads, meter=meter)
        (standby,) = prometheus_routes(services)
        text = (await standby.handler(_request({}))).body.decode()
        assert 'drey_leader{process="jobmanager"} 0.0' in text
        assert 'drey_leader_epoch{process="jobmanager"} 7.0' in text
        assert "drey_taskmanagers" not in text
        (past,) = prometheus_routes(dataclasses.replace(world.services, connect=None))
        text = (await past.handler(_request({}))).body.decode()
        assert 'process="historyserver"' in text and "drey_taskmanagers" not in text, "it has none, which is no alarm"
        worker = process_metrics_route("taskmanager-5f", meter)
        assert 'drey_process_threads{process="taskmanager-5f"}' in (await worker.handler(_request({}))).body.decode()

    def _request(query):
        return HttpRequest("GET", "/metrics", {}, query, {})

    scenario(body)


def test_the_oldest_waiting_job_gives_the_age_of_the_queue():
    def waiting(place, start_ms, reason):
        return JobOverview(JobId.random(), "", "RUNNING", start_ms, -1, {}, WaitingJob(place, 2, 4, 2, reason))

    jobs = JobList((waiting(1, 4_000, WaitingReason.SLOTS), waiting(2, 1_000, WaitingReason.CLUSTER)))
    found = samples_of(cluster_families(jobs, TaskExecutorList(()), 11_000))
    assert found["drey_waiting_jobs", ("reason", "SLOTS")] == 1
    assert found["drey_waiting_jobs", ("reason", "LIMIT")] == 0
    assert found["drey_oldest_waiting_job_seconds",] == 10


def test_events_are_there_before_the_first_of_them_so_that_an_increase_is_seen():
    events = ClusterEvents()
    found = samples_of(event_families(events.counts, events.durations))
    assert found["drey_job_duration_seconds_count", ("state", "FAILED")] == 0
    assert found["drey_taskmanagers_lost_total",] == 0
    events.job_ended("FAILED", 2.0)
    events.job_ended("FAILED", 2e9)
    events.note(ClusterEvent.TASK_MANAGER_LOST)
    found = samples_of(event_families(events.counts, events.durations))
    assert found["drey_job_duration_seconds_bucket", ("le", "1.0"), ("state", "FAILED")] == 0
    assert found["drey_job_duration_seconds_bucket", ("le", "5.0"), ("state", "FAILED")] == 1
    assert found["drey_job_duration_seconds_bucket", ("le", "+Inf"), ("state", "FAILED")] == 2
    assert found["drey_taskmanagers_lost_total",] == 1


def test_a_running_job_has_its_function_time_and_its_traffic_with_stores():
    counters = TaskCounters(
        spilled_bytes=9,
        operators=(OperatorCounters("map", function_us=2_500_000), OperatorCounters("sort")),
        stores={"s3://a": (3, 100, 7)},
    )
    job = JobProgress(JobId.random(), "j", "RUNNING", 0, (VertexProgress("v", 1, counters, {}),))
    labels = (("job", "j"), ("job_id", job.job_id.value))
    found = samples_of(job_families([job]))
    assert found["drey_job_function_seconds_total", *labels] == 2.5
    assert found["drey_job_store_requests_total", *labels, ("store", "s3://a")] == 3
    assert found["drey_job_store_bytes_total", ("direction", "in"), *labels, ("store", "s3://a")] == 100


def test_a_changing_part_of_a_name_is_a_label_and_a_part_that_is_not_there_no_family():
    values = {"Status.Disk.Free./data/a.b": 5.0, "Status.Leader.Leads": 1.0}
    families = process_families([ProcessOf("jobmanager", "1", "p", values), ProcessOf("taskmanager-1", "1", "p", {})])
    found = samples_of(families)
    assert found["drey_process_disk_free_bytes", ("folder", "/data/a.b"), ("process", "jobmanager")] == 5
    assert {family.name for family in families} == {"drey_build_info", "drey_leader", "drey_process_disk_free_bytes"}
    assert len({row.name for row in PROCESS_ROWS}) == len({row.source for row in PROCESS_ROWS}) == len(PROCESS_ROWS)


def test_a_task_manager_that_hangs_takes_half_of_the_time_that_prometheus_gives():
    async def body(world):
        await until(lambda: _has_slots(world))
        hung = asyncio.Event()

        async def hang(request):
            await hung.wait()

        world.insights[0]._handlers[RequestProcessMetrics] = hang
        async with asyncio.timeout(4.5):  # less than it is asked for without the header
            async with world.session.get("/metrics", headers={"X-Prometheus-Scrape-Timeout-Seconds": "0.4"}) as got:
                text = await got.text()
        assert "drey_taskmanagers 1.0" in text and 'drey_process_threads{process="taskmanager' not in text
        hung.set()

    async def _has_slots(world):
        return (await world.get("/overview"))["slots-total"]

    scenario(body)
