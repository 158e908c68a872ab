"""rest_routes(services): the table of all routes of the REST API, under Flink's paths and again under ``/v1``.

Held by: tests/rest/test_descriptions.py
"""

from __future__ import annotations

from dataclasses import replace

from engine.rest.cluster_routes import cluster_routes
from engine.rest.job_detail_routes import job_detail_routes
from engine.rest.job_list_routes import job_list_routes
from engine.rest.job_log_routes import job_log_routes
from engine.rest.job_routes import job_routes
from engine.rest.jobmanager_routes import jobmanager_routes
from engine.rest.openapi import openapi_route
from engine.rest.prometheus_routes import prometheus_routes
from engine.rest.route_roles import with_roles
from engine.rest.services import RestServices, explained
from engine.rest.status_pages import status_page_routes
from engine.rest.streaming_routes import streaming_routes
from engine.rest.taskmanager_routes import taskmanager_routes
from engine.rest.vertex_routes import vertex_routes
from engine.rpc.http_messages import Route


def rest_routes(services: RestServices) -> tuple[Route, ...]:
    """Return all routes; those with a fixed name in a place come before those with a variable in it."""
    tables = (
        cluster_routes(services),
        taskmanager_routes(services),
        jobmanager_routes(services),
        job_list_routes(services),
        job_routes(services),
        job_log_routes(services),
        job_detail_routes(services),
        vertex_routes(services),
        status_page_routes(services),
        prometheus_routes(services),
        streaming_routes(),
    )
    routes = [replace(route, handler=explained(route.handler)) for table in tables for route in table]
    routes.append(openapi_route(routes))
    return with_roles((*routes, *(replace(route, path=f"/v1{route.path}") for route in routes if route.path != "/")))
