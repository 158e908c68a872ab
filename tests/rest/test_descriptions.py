"""What is made from what the components know: metrics for Prometheus, the description of the API."""

from __future__ import annotations

import re
import threading

from prometheus_client.parser import text_string_to_metric_families

from engine.rest.routes import rest_routes
from engine.rpc.http_messages import Access
from tests.jobmaster.job_graphs import job_graph
from tests.rest.rest_world import scenario, until


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

    scenario(body)


def test_the_description_names_every_route_once():
    async def body(world):
        document = await world.get("/openapi.json")
        routes = [route for route in rest_routes(world.services) if not route.path.startswith("/v1/")]
        described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
        assert described == {(route.method, route.path) for route in routes}
        assert len(described) == len(routes)
        operations = [operation for methods in document["paths"].values() for operation in methods.values()]
        names = [operation["operationId"] for operation in operations]
        assert len(set(names)) == len(names)
        assert all(operation["summary"] for operation in operations), "in a few words, for every route"
        paths = document["paths"]
        assert paths["/jobs"]["post"]["security"] == [{"clusterSecret": []}]
        assert {} in paths["/jobs"]["get"]["security"], "nothing is needed on this machine"
        schemes = set(document["components"]["securitySchemes"])
        assert all({*need} <= schemes for operation in operations for need in operation["security"])
        for path, methods in paths.items():
            for operation in methods.values():
                parameters = {parameter["name"]: parameter for parameter in operation["parameters"]}
                assert set(parameters) == set(re.findall(r"{(\w+)}", path))
                assert all("description" in parameter["schema"] for parameter in parameters.values()), path

    scenario(body)


def test_whatever_changes_something_needs_the_secret():
    async def body(world):
        changing = {route for route in rest_routes(world.services) if route.method != "GET"}
        open_to_readers = {route.path for route in changing if route.access is not Access.SECRET}
        assert open_to_readers == {"/jobs/{job_id}", "/v1/jobs/{job_id}"}, "cancel, where the operator allows it"
        assert {route.access for route in changing} == {Access.SECRET, Access.CANCEL}

    scenario(body)
