"""The description of the REST API (OpenAPI 3.1), made from the table of routes, so that it cannot miss one.

GET /openapi.json

Held by: tests/rest/test_descriptions.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine import __version__
from engine.rest.services import answer
from engine.rest.streaming_routes import REFUSALS
from engine.rpc.credentials import SCHEME
from engine.rpc.http_messages import Access, HttpRequest, HttpResponse, Route

_VARIABLE = re.compile(r"{(\w+)}")
_ID = {"type": "string", "pattern": "^[0-9a-f]{32}$", "minLength": 32, "maxLength": 32}
_NUMBER = {"type": "integer", "format": "int32", "minimum": 0, "maximum": 999_999_999}
#: patterns of path variables
_FORMS = {
    "job_id": {**_ID, "description": "id of a job"},
    "vertex_id": {**_ID, "description": "id of a vertex, as /jobs/{job_id} tells it"},
    "taskmanager_id": {**_ID, "description": "id of a TaskManager, as /taskmanagers tells it"},
    "index": {**_NUMBER, "description": "position of a subtask, from 0"},
    "attempt": {**_NUMBER, "description": "number of an attempt, from 0"},
    "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "SHA-256 of a file"},
    "name": {"type": "string", "description": "name of a file, as the list of files tells it"},
}
#: summaries by path or by its end; the longest end that fits counts
_SUMMARIES = {
    "/": "page: slots, TaskManagers, jobs",
    "/overview": "slots, TaskManagers, jobs by state",
    "/config": "settings of what the path names; secrets are hidden",
    "/datasets": "results that outlive their jobs: there are none",
    "/cluster": "end all TaskManagers and the JobManager that leads",
    "/taskmanagers": "TaskManagers with slots, memory and machine; of a vertex: where its subtasks ran",
    "/taskmanagers/{taskmanager_id}": "one TaskManager",
    "/metrics": "names of metrics; with ?get=a,b their values",
    "/taskmanagers/metrics": "names of metrics; with ?get=a,b aggregates over TaskManagers",
    "/jobs/metrics": "names of metrics; with ?get=a,b aggregates over all jobs, or those of ?jobs=",
    "/subtasks/metrics": "names of metrics; with ?get=a,b aggregates over all subtasks, or ?subtasks=0-2,5",
    "/logs": "names and sizes of log files",
    "/logs/{name}": "one log file",
    "/log": "the newest log file",
    "/stdout": "what was printed",
    "/log-files": "page: the log files of a job's attempts",
    "/page": "page: one job or process",
    "/flame-graph": "page: what the time of a process goes into, for ?seconds= from now; ?format=folded: as text",
    "/thread-dump": "the stack of every thread",
    "/refusals": "callers that were refused last, because of their secret, clock or version",
    "/environment": "interpreter and variables of the process",
    "/jobs": "ids and states of jobs",
    "/overview/events": "the overview as it changes: server-sent events with parts of the page",
    "/jobs/overview": "jobs with names, times, tasks by state, and the place of those that wait for slots",
    "/jobs/{job_id}": "one job: vertices, states, times",
    "/status": "the state of a job",
    "/progress": "live numbers of a job",
    "/outcome": "how a job ended; waits ?wait= seconds for that, then 202",
    "/exceptions": "failures, newest first",
    "/plan": "the plan of a job",
    "/profile": "everything about the run of a job: expected and real, per operator and subtask, causes",
    "/execution-result": "the result of a job that has ended",
    "/accumulators": "counters of users' functions",
    "/vertices/{vertex_id}": "one vertex and its subtasks",
    "/subtasktimes": "when each subtask reached each state",
    "/backpressure": "how long tasks waited for room; sampled when it is asked for",
    "/subtasks/{index}": "the current attempt of a subtask",
    "/attempts/{attempt}": "one attempt of a subtask",
    "/openapi.json": "this description",
}
_CHANGES = {
    "DELETE /cluster": _SUMMARIES["/cluster"],
    "POST /jobs": "hand over a job: msgpack of SubmitJob; the same job again is not started twice",
    "PATCH /taskmanagers/{taskmanager_id}": "end it once it is empty: ?mode=drain; or in ?timeout= seconds: ?mode=stop",
    "PATCH /jobs/{job_id}": "cancel a job: ?mode=cancel",
}
_ERRORS = {
    "description": "what is wrong",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["errors"],
                "properties": {"errors": {"type": "array", "items": {"type": "string"}}},
            }
        }
    },
}


def openapi_route(routes: Iterable[Route]) -> Route:
    """Return the route that describes ``routes`` and itself."""
    described = list(routes)

    async def describe(_: HttpRequest) -> HttpResponse:
        return answer(document)

    own = Route("GET", "/openapi.json", describe, Access.OPEN_GET)
    document = openapi_document([*described, own])
    return own


def openapi_document(routes: Iterable[Route]) -> dict[str, object]:
    """Return the description of routes."""
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Drey REST API", "version": __version__},
        "servers": [{"url": "/"}, {"url": "/v1"}],
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {
            "securitySchemes": {
                "clusterSecret": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": f"{SCHEME}: an HMAC-SHA256 with the cluster secret over method, target, epoch, "
                    "time, nonce and body digest",
                },
                "readToken": {"type": "http", "scheme": "bearer", "description": "the token of read.token"},
                "readTokenAsPassword": {"type": "http", "scheme": "basic", "description": "any user, the same token"},
            },
            "responses": {"Errors": _ERRORS},
        },
    }


def summary_of(route: Route) -> str:
    """Return the summary of a route in a few words."""
    refused = REFUSALS.get((route.method, route.path))
    if refused is not None or route.method != "GET":
        return refused or _CHANGES.get(f"{route.method} {route.path}", "")
    ends = [end for end in _SUMMARIES if route.path.endswith(end) and (end != "/" or route.path == "/")]
    return _SUMMARIES[max(ends, key=len)] if ends else ""


def _text(name: str) -> dict[str, object]:
    return {"type": "string", "description": name.replace("_", " ")}


def _operation(route: Route) -> dict[str, object]:
    words = re.findall(r"\w+", route.path) or ["root"]
    operation: dict[str, object] = {
        "operationId": "_".join([route.method.lower(), *words]),
        "summary": summary_of(route),
        "tags": [words[0]],
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": _FORMS.get(name) or _text(name)}
            for name in _VARIABLE.findall(route.path)
        ],
        "responses": {
            "2XX": {"description": "the answer"},
            "default": {"$ref": "#/components/responses/Errors"},
        },
    }
    if route.access is Access.SECRET:
        operation["security"] = [{"clusterSecret": []}]
    elif route.access is Access.CANCEL:
        operation["security"] = [{"clusterSecret": []}, {"readToken": []}, {"readTokenAsPassword": []}]
    else:
        # Needed beyond this machine only.
        operation["security"] = [{}, {"readToken": []}, {"readTokenAsPassword": []}, {"clusterSecret": []}]
    return operation
