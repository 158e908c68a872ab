"""The description of the API, made from its routes."""

from __future__ import annotations

import re

from engine.rest.routes import rest_routes
from engine.rpc.http_messages import Access
from tests.rest.rest_world import scenario


def test_the_description_names_every_route_once():
    async def body(world):
        document = await world.get("/openapi.json")
        routes = [route for route in rest_routes(world.services) if not route.path.startswith("/v1/")]
        described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
        health = {("GET", "/healthz"), ("GET", "/readyz")}
        assert described == {(route.method, route.path) for route in routes} | health
        assert len(described) == len(routes) + len(health)
        assert all(document["paths"][path]["get"]["security"] == [] for _, path in health), "open on any machine"
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
