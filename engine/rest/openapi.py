"""The description of the REST API (OpenAPI 3.1), made from the table of routes, so that it cannot miss one.

GET /openapi.json
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.rest.services import answer
from engine.rest.version import version
from engine.rpc.credentials import SCHEME
from engine.rpc.http_messages import Access, HttpRequest, HttpResponse, Route

_VARIABLE = re.compile(r"{(\w+)}")
_ID = {"type": "string", "pattern": "^[0-9a-f]{32}$", "minLength": 32, "maxLength": 32}
_NUMBER = {"type": "integer", "format": "int32", "minimum": 0, "maximum": 999_999_999}
#: what variables of paths look like
_FORMS = {
    "job_id": {**_ID, "description": "id of a job"},
    "vertex_id": {**_ID, "description": "id of a vertex, as /jobs/{job_id} tells it"},
    "taskmanager_id": {**_ID, "description": "id of a TaskManager, as /taskmanagers tells it"},
    "index": {**_NUMBER, "description": "position of a subtask, from 0"},
    "attempt": {**_NUMBER, "description": "number of an attempt, from 0"},
    "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "SHA-256 of a file"},
    "name": {"type": "string", "description": "name of a file, as the list of files tells it"},
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
        "info": {"title": "Drey REST API", "version": version()},
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


def _text(name: str) -> dict[str, object]:
    return {"type": "string", "description": name.replace("_", " ")}


def _operation(route: Route) -> dict[str, object]:
    words = re.findall(r"\w+", route.path) or ["root"]
    operation: dict[str, object] = {
        "operationId": "_".join([route.method.lower(), *words]),
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
        # Beyond this machine; on it nothing is needed.
        operation["security"] = [{}, {"readToken": []}, {"readTokenAsPassword": []}, {"clusterSecret": []}]
    return operation
