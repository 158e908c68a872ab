"""A job, its vertices and its attempts over HTTP, from jobs that really run (of fake tasks)."""

from __future__ import annotations

import asyncio
import re
import threading

import msgspec

from engine.gateways.insight import TaskActivity
from engine.ids import JobId
from engine.rest import vertex_routes
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph
from tests.rest.rest_world import scenario, until

GRAPH_EDGES = [Edge(0, 1, result_type=BLOCKING)]


def test_a_finished_job_is_told_in_every_detail():
    async def body(world):
        graph = job_graph([2, 1], GRAPH_EDGES, ["scan", "write"], name="prices")
        settings = {"parallelism.default": "2", "my.password": "hunter2"}
        graph = msgspec.structs.replace(graph, configuration=settings)
        assert await world.run(graph) == "FINISHED"
        base = f"/jobs/{graph.job_id}"
        job = await world.get(base)
        assert (job["name"], job["state"]) == ("prices", "FINISHED")
        assert [(vertex["name"], vertex["status"]) for vertex in job["vertices"]] == [
            ("scan", "FINISHED"),
            ("write", "FINISHED"),
        ]
        assert all(re.fullmatch("[0-9a-f]{32}", vertex["id"]) for vertex in job["vertices"])
        assert job["vertices"][0]["metrics"]["write-records"] == 2
        assert job["status-counts"]["FINISHED"] == 2 and job["end-time"] >= job["start-time"] > 0
        assert job["timestamps"]["FINISHED"] >= job["timestamps"]["RUNNING"] > 0
        (_, write) = (await world.get(f"{base}/plan"))["plan"]["nodes"]
        assert write["inputs"][0]["id"] == job["vertices"][0]["id"] and write["inputs"][0]["exchange"] == "blocking"
        assert await world.get(f"{base}/status") == {"status": "FINISHED"}
        result = await world.get(f"{base}/execution-result")
        assert result["job-execution-result"]["application-status"] == "SUCCEEDED"
        assert (await world.get(f"{base}/exceptions"))["all-exceptions"] == []
        config = (await world.get(f"{base}/config"))["execution-config"]["user-config"]
        assert config == {"my.password": "******", "parallelism.default": "2"}
        assert (await world.get(f"{base}/accumulators"))["user-task-accumulators"] == []
        names = {metric["id"] for metric in await world.get(f"{base}/metrics")}
        assert "numRestarts" in names

    scenario(body)


def test_vertices_subtasks_and_attempts_of_a_job():
    async def body(world):
        graph = job_graph([2, 1], GRAPH_EDGES, ["scan", "write"])
        await world.run(graph)
        job = await world.get(f"/jobs/{graph.job_id}")
        base = f"/jobs/{graph.job_id}/vertices/{job['vertices'][0]['id']}"
        vertex = await world.get(base)
        ids = {str(executor.resource_id) for executor in world.cluster.task_executors}
        assert [line["subtask"] for line in vertex["subtasks"]] == [0, 1]
        assert all(line["taskmanager-id"] in ids and line["end-time"] > 0 for line in vertex["subtasks"])
        assert len((await world.get(f"{base}/subtasktimes"))["subtasks"]) == 2
        assert (
            sum(line["status-counts"]["FINISHED"] for line in (await world.get(f"{base}/taskmanagers"))["taskmanagers"])
            == 2
        )
        assert await world.get(f"{base}/metrics?get=1.numRecordsOut") == [{"id": "1.numRecordsOut", "value": "1"}]
        assert (await world.get(f"{base}/accumulators"))["user-accumulators"] == []
        assert (await world.get(f"{base}/subtasks/1"))["subtask"] == 1
        assert (await world.get(f"{base}/subtasks/1/attempts/0"))["attempt"] == 0
        for path in ("subtasks/2", "subtasks/1/attempts/7"):
            await world.get(f"{base}/{path}", 404)
        await world.get(f"{base}/subtasks/one", 400)
        counted = await world.get(f"{base}/subtasks/accumulators")
        assert (counted["id"], counted["parallelism"]) == (vertex["id"], 2)
        assert [(line["subtask"], line["attempt"], line["user-accumulators"]) for line in counted["subtasks"]] == [
            (0, 0, []),
            (1, 0, []),
        ]
        assert await world.get(f"{base}/subtasks/1/metrics?get=numRecordsOut") == [
            {"id": "numRecordsOut", "value": "1"}
        ]
        await world.get(f"/jobs/{graph.job_id}/vertices/{'f' * 32}", 404)

    scenario(body, (1, 1))


def test_a_failed_job_tells_what_went_wrong_and_where():
    async def body(world):
        def fail(task):
            raise ValueError("no such currency: 'XYZ'")

        world.cluster.resources[0].bodies["parse"] = fail
        graph = job_graph([1], names=["parse"])
        assert await world.run(graph) == "FAILED"
        (entry,) = (await world.get(f"/jobs/{graph.job_id}/exceptions"))["exceptionHistory"]["entries"]
        assert entry["exceptionName"] == "ValueError" and entry["taskName"] == "parse (1/1)"
        assert "no such currency" in entry["stacktrace"].splitlines()[0] and "Traceback" in entry["stacktrace"]
        assert entry["taskManagerId"] == str(world.cluster.task_executors[0].resource_id)
        result = (await world.get(f"/jobs/{graph.job_id}/execution-result"))["job-execution-result"]
        assert result["failure-cause"]["class"] == "ValueError"
        assert (await world.get("/overview"))["jobs-failed"] == 1

    scenario(body, (1,))


def test_what_is_not_known_is_404_and_what_is_for_streams_is_refused_by_name():
    async def body(world):
        nobody = f"/jobs/{JobId.random()}"
        for path in ("", "/status", "/plan", "/exceptions", "/vertices/0", "/execution-result"):
            assert "errors" in await world.get(f"{nobody}{path}", 404)
        await world.get("/no/such/path", 404)
        for path in (f"{nobody}/checkpoints", "/jars"):
            assert "errors" in await world.get(path, 501)
        status, answer = await world.send("POST", f"{nobody}/savepoints")
        assert status == 501 and "savepoints" in answer["errors"][0]

    scenario(body)


def test_back_pressure_is_sampled_while_tasks_run(monkeypatch):
    async def body(world):
        release, seen = threading.Event(), threading.Event()

        def work(task):
            task.doing = TaskActivity.BACK_PRESSURED
            seen.set()
            assert release.wait(30)

        world.cluster.resources[0].bodies["scan"] = work
        graph = job_graph([1], names=["scan"])
        await world.submit(graph)
        await asyncio.to_thread(seen.wait, 30)
        try:
            job = await until(lambda: running(world, graph.job_id))
            path = f"/jobs/{graph.job_id}/vertices/{job['vertices'][0]['id']}/backpressure"
            found, again = await asyncio.gather(world.get(path), world.get(path))
            assert found["subtasks"] == again["subtasks"]
            (line,) = found["subtasks"]
            assert (found["status"], found["backpressureLevel"]) == ("ok", "high")
            assert (line["ratio"], line["busyRatio"], line["idleRatio"]) == (1.0, 0.0, 0.0)
        finally:
            release.set()

    monkeypatch.setattr(vertex_routes, "_SAMPLES", 3)
    monkeypatch.setattr(vertex_routes, "_SAMPLE_INTERVAL_MS", 5)
    scenario(body, (1,))


def test_the_back_pressure_of_a_vertex_that_does_not_run_is_not_sampled(monkeypatch):
    async def body(world):
        graph = job_graph([1], names=["scan"])
        await world.run(graph)
        job = await world.get(f"/jobs/{graph.job_id}")
        path = f"/jobs/{graph.job_id}/vertices/{job['vertices'][0]['id']}/backpressure"
        found = await asyncio.wait_for(world.get(path), 30)
        assert (found["subtasks"], found["backpressureLevel"]) == ([], "ok")

    monkeypatch.setattr(vertex_routes, "_SAMPLE_INTERVAL_MS", 3_600_000)  # a sample would take hours
    scenario(body, (1,))


def test_numbers_of_several_things_are_aggregated():
    async def body(world):
        graph, other = job_graph([3], names=["scan"]), job_graph([1], names=["scan"])
        await world.run(graph)
        await world.run(other)
        job = await world.get(f"/jobs/{graph.job_id}")
        path = f"/jobs/{graph.job_id}/vertices/{job['vertices'][0]['id']}/subtasks/metrics"
        assert {"id": "numRecordsOut"} in await world.get(path)
        whole = {"id": "numRecordsOut", "min": 0.0, "max": 0.0, "avg": 0.0, "sum": 0.0}
        (found,) = await world.get(f"{path}?get=numRecordsOut,nothing")
        assert set(found) == set(whole)
        assert found["sum"] == 3 * found["avg"] == 3 * found["max"]
        (part,) = await world.get(f"{path}?get=numRecordsOut&agg=sum,max&subtasks=0-1,7")
        assert part == {"id": "numRecordsOut", "sum": 2 * found["max"], "max": found["max"]}
        assert await world.get(f"{path}?get=numRecordsOut&subtasks=9") == []
        await world.get(f"{path}?get=numRecordsOut&agg=median", 400)
        await world.get(f"{path}?get=numRecordsOut&subtasks=one", 400)

        assert {"id": "runtime"} in await world.get("/jobs/metrics")
        (both,) = await world.get("/jobs/metrics?get=numFailures&agg=sum,min")
        assert both == {"id": "numFailures", "sum": 0.0, "min": 0.0}
        assert await world.get(f"/jobs/metrics?get=runtime&jobs={'f' * 32}") == []
        (one,) = await world.get(f"/jobs/metrics?get=runtime&jobs={graph.job_id}")
        assert one["min"] == one["max"] == one["sum"] > 0

        names = {each["id"] for each in await world.get("/taskmanagers/metrics")}
        one, two = (str(executor.resource_id) for executor in world.cluster.task_executors)
        (first, *_) = sorted(names)
        (found,) = await world.get(f"/taskmanagers/metrics?get={first}&taskmanagers={one},{two}")
        assert found["min"] <= found["avg"] <= found["max"] <= found["sum"]
        assert await world.get(f"/taskmanagers/metrics?get={first}&taskmanagers=none") == []

    scenario(body, (2, 2))


async def running(world, job_id):
    job = await world.get(f"/jobs/{job_id}")
    return job if job["vertices"][0]["status"] == "RUNNING" else None
