"""Writes reference/rest.md from the table of routes, and puts the same OpenAPI document beside it."""

import json
from itertools import groupby
from typing import Any
from unittest.mock import MagicMock

import mkdocs_gen_files

from engine.rest.openapi import openapi_document, summary_of
from engine.rest.routes import rest_routes
from engine.rest.streaming_routes import REFUSALS
from engine.rpc.http_messages import Access, Route

_WHO = {
    Access.OPEN_GET: "open",
    Access.CANCEL: "signed, or may cancel",
    Access.SECRET: "signed",
}
_HEAD = """# REST

Paths and field names are those of Flink. Every path exists with the prefix `/v1`, too. A cluster answers at
`http://localhost:8081`, and describes its API at `/openapi.json`; [the same document](openapi.json) is part of this
documentation.

`open`: all users of this machine have access; other machines need the cluster's secret, the read token (where the role
is `read`), or a client certificate ([security](../operating/security.md)). `signed`: needs a signature with the
cluster's secret.
`signed, or may cancel`: with `web.cancel.enable`, everyone with read access may cancel.
A [user](../operating/security.md#users) needs the role, or a higher one. An error is
`{"errors": ["..."]}`; its first line is the root cause.

"""


def _is_refused(route: Route) -> bool:
    return (route.method, route.path) in REFUSALS


def _page(routes: list[Route]) -> str:
    lines = [_HEAD]
    answered = sorted((route for route in routes if not _is_refused(route)), key=lambda route: route.path)
    for title, group in groupby(answered, lambda route: route.path.split("/")[1] or "pages"):
        lines += [f"## {title}", "", "| method | path | who | role | |", "|---|---|---|---|---|"]
        for route in group:
            role = route.role.text if route.role is not None else ""
            lines.append(f"| {route.method} | `{route.path}` | {_WHO[route.access]} | {role} | {summary_of(route)} |")
        lines.append("")
    lines += [
        "## Known, and refused",
        "",
        "Flink's paths of streaming and of JAR files, which answer 501.",
        "",
        "| | | |",
        "|---|---|---|",
    ]
    refused = filter(_is_refused, routes)
    lines += [f"| {route.method} | `{route.path}` | {summary_of(route)} |" for route in refused]
    return "\n".join(lines) + "\n"


# Routes ask for services when they are called, and none is called here.
_services: Any = MagicMock()
_routes = [route for route in rest_routes(_services) if not route.path.startswith("/v1")]
with mkdocs_gen_files.open("reference/rest.md", "w") as page:
    page.write(_page(_routes))
with mkdocs_gen_files.open("reference/openapi.json", "w") as document:
    json.dump(openapi_document(_routes), document, indent=1)
