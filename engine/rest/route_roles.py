"""The roles that routes need: a table of all of them. None: the cluster secret, whatever role a user has.

    with_roles(routes) ─► the same routes, each with the role of its row; KeyError for one without a row

READ sees, SUBMIT also runs jobs and cancels its own, ADMIN also ends TaskManagers and the cluster. ``/v1/...`` has the
rows of the paths without it.

Held by: tests/rest/test_route_roles.py
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from engine.rpc.http_messages import Route
from engine.rpc.principal import Role

ROLES: Final[dict[tuple[str, str], Role | None]] = {
    ("GET", "/"): Role.READ,
    ("GET", "/config"): Role.READ,
    ("GET", "/datasets"): Role.READ,
    ("GET", "/jars"): Role.READ,
    ("GET", "/jobmanager/config"): Role.READ,
    ("GET", "/jobmanager/environment"): Role.READ,
    ("GET", "/jobmanager/flame-graph"): Role.SUBMIT,
    ("GET", "/jobmanager/log"): Role.READ,
    ("GET", "/jobmanager/logs"): Role.READ,
    ("GET", "/jobmanager/logs/{name}"): Role.READ,
    ("GET", "/jobmanager/metrics"): Role.READ,
    ("GET", "/jobmanager/page"): Role.READ,
    ("GET", "/jobmanager/refusals"): Role.READ,
    ("GET", "/jobmanager/stdout"): Role.READ,
    ("GET", "/jobmanager/thread-dump"): Role.READ,
    ("GET", "/jobs"): Role.READ,
    ("GET", "/jobs/metrics"): Role.READ,
    ("GET", "/jobs/overview"): Role.READ,
    ("GET", "/jobs/{job_id}"): Role.READ,
    ("GET", "/jobs/{job_id}/accumulators"): Role.READ,
    ("GET", "/jobs/{job_id}/checkpoints"): Role.READ,
    ("GET", "/jobs/{job_id}/checkpoints/config"): Role.READ,
    ("GET", "/jobs/{job_id}/config"): Role.READ,
    ("GET", "/jobs/{job_id}/exceptions"): Role.READ,
    ("GET", "/jobs/{job_id}/execution-result"): Role.READ,
    ("GET", "/jobs/{job_id}/log-files"): Role.READ,
    ("GET", "/jobs/{job_id}/logs"): Role.READ,
    ("GET", "/jobs/{job_id}/logs/{name}"): Role.READ,
    ("GET", "/jobs/{job_id}/metrics"): Role.READ,
    ("GET", "/jobs/{job_id}/outcome"): Role.READ,
    ("GET", "/jobs/{job_id}/page"): Role.READ,
    ("GET", "/jobs/{job_id}/plan"): Role.READ,
    ("GET", "/jobs/{job_id}/profile"): Role.READ,
    ("GET", "/jobs/{job_id}/progress"): Role.READ,
    ("GET", "/jobs/{job_id}/resource-requirements"): Role.READ,
    ("GET", "/jobs/{job_id}/savepoints/{trigger_id}"): Role.READ,
    ("GET", "/jobs/{job_id}/status"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/accumulators"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/backpressure"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/flamegraph"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/metrics"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/subtasks/accumulators"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/subtasks/metrics"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/subtasks/{index}"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/subtasks/{index}/attempts/{attempt}"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/subtasks/{index}/attempts/{attempt}/accumulators"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/subtasks/{index}/metrics"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/subtasktimes"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/taskmanagers"): Role.READ,
    ("GET", "/jobs/{job_id}/vertices/{vertex_id}/watermarks"): Role.READ,
    ("GET", "/metrics"): Role.READ,
    ("GET", "/openapi.json"): Role.READ,
    ("GET", "/overview"): Role.READ,
    ("GET", "/overview/events"): Role.READ,
    ("GET", "/taskmanagers"): Role.READ,
    ("GET", "/taskmanagers/metrics"): Role.READ,
    ("GET", "/taskmanagers/{taskmanager_id}"): Role.READ,
    ("GET", "/taskmanagers/{taskmanager_id}/flame-graph"): Role.SUBMIT,
    ("GET", "/taskmanagers/{taskmanager_id}/log"): Role.READ,
    ("GET", "/taskmanagers/{taskmanager_id}/logs"): Role.READ,
    ("GET", "/taskmanagers/{taskmanager_id}/logs/{name}"): Role.READ,
    ("GET", "/taskmanagers/{taskmanager_id}/metrics"): Role.READ,
    ("GET", "/taskmanagers/{taskmanager_id}/page"): Role.READ,
    ("GET", "/taskmanagers/{taskmanager_id}/stdout"): Role.READ,
    ("GET", "/taskmanagers/{taskmanager_id}/thread-dump"): Role.READ,
    ("POST", "/jars/upload"): Role.SUBMIT,
    ("DELETE", "/jars/{jar_id}"): Role.SUBMIT,
    ("POST", "/jars/{jar_id}/run"): Role.SUBMIT,
    ("POST", "/jars/{jar_id}/run-application"): Role.SUBMIT,
    ("POST", "/jobs"): Role.SUBMIT,
    ("PATCH", "/jobs/{job_id}"): Role.SUBMIT,
    ("PUT", "/jobs/{job_id}/blobs/{key}"): Role.SUBMIT,
    ("POST", "/jobs/{job_id}/checkpoints"): Role.SUBMIT,
    ("PUT", "/jobs/{job_id}/resource-requirements"): Role.SUBMIT,
    ("POST", "/jobs/{job_id}/savepoints"): Role.SUBMIT,
    ("POST", "/jobs/{job_id}/stop"): Role.SUBMIT,
    ("POST", "/savepoint-disposal"): Role.SUBMIT,
    ("DELETE", "/cluster"): Role.ADMIN,
    ("PATCH", "/taskmanagers/{taskmanager_id}"): Role.ADMIN,
    ("GET", "/jobs/{job_id}/blobs/{key}"): None,
    ("POST", "/rpc"): None,
    ("POST", "/rpc/{name}"): None,
}


def with_roles(routes: Iterable[Route]) -> tuple[Route, ...]:
    """Return the routes with their roles."""
    return tuple(replace(route, role=ROLES[route.method, route.path.removeprefix("/v1")]) for route in routes)
