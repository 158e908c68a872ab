"""The JobManager's own process.

GET /jobmanager/config         what is set; secrets are hidden
GET /jobmanager/environment    interpreter and variables of this program
GET /jobmanager/metrics        names; with ?get=a,b their values
GET /jobmanager/logs           its log files; /logs/{name} one, /log the newest, /stdout its output
GET /jobmanager/thread-dump
GET /jobmanager/refusals       the callers that were refused last: by reason and address, how often, and why

Held by: tests/rest/test_process_routes.py
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Mapping, Sequence

from engine import __version__
from engine.config.loader import Configuration
from engine.config.options import all_options
from engine.config.secret_keys import HIDDEN, is_secret, shown_text
from engine.gateways.insight import LogPart
from engine.gateways.protocol import protocol
from engine.insight.log_folder import LogFolder
from engine.insight.thread_dump import thread_dump
from engine.rest.log_files import log_answer, log_list
from engine.rest.metrics_answer import metrics_answer
from engine.rest.services import RestServices, answer
from engine.rpc.http_messages import Access, Handler, HttpRequest, HttpResponse, Route
from engine.rpc.refusals import REFUSALS, Reason, Refusal

#: prefix of variables that are shown: this program's own
_VARIABLE_PREFIX = "DREY_"


def jobmanager_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def config(_: HttpRequest) -> HttpResponse:
        return answer(config_document(services.configuration))

    async def environment(_: HttpRequest) -> HttpResponse:
        return answer(_environment_document())

    async def metrics(request: HttpRequest) -> HttpResponse:
        return metrics_answer(request, services.meter.read())

    async def logs(_: HttpRequest) -> HttpResponse:
        return answer(log_list(await asyncio.to_thread(services.logs.files)))

    async def threads(_: HttpRequest) -> HttpResponse:
        return answer(
            {"threadInfos": [{"threadName": each.name, "stringifiedThreadInfo": each.text} for each in thread_dump()]}
        )

    async def refusals(_: HttpRequest) -> HttpResponse:
        return answer(refusals_document(REFUSALS.counts, REFUSALS.latest))

    return (
        Route("GET", "/jobmanager/config", config, Access.OPEN_GET),
        Route("GET", "/jobmanager/environment", environment, Access.OPEN_GET),
        Route("GET", "/jobmanager/metrics", metrics, Access.OPEN_GET),
        Route("GET", "/jobmanager/logs", logs, Access.OPEN_GET),
        Route("GET", "/jobmanager/logs/{name}", _log_reader(services.logs, None), Access.OPEN_GET),
        Route("GET", "/jobmanager/log", _log_reader(services.logs, services.logs.log), Access.OPEN_GET),
        Route("GET", "/jobmanager/stdout", _log_reader(services.logs, services.logs.output), Access.OPEN_GET),
        Route("GET", "/jobmanager/thread-dump", threads, Access.OPEN_GET),
        Route("GET", "/jobmanager/refusals", refusals, Access.OPEN_GET),
    )


def config_document(configuration: Configuration) -> list[dict[str, object]]:
    """Return every option that has a value, with where it comes from."""
    return [
        {"key": option.key, "value": text, "origin": configuration.origin(option.key)}
        for option in all_options()
        if (text := shown_text(configuration, option.key)) is not None
    ]


def refusals_document(counts: Mapping[Reason, int], latest: Sequence[Refusal]) -> dict[str, object]:
    """Return the refusals of this process as a document."""
    return {
        "counts": {reason.value: count for reason, count in counts.items()},
        "refused": [
            {
                "reason": each.reason.value,
                "address": each.address,
                "count": each.count,
                "last": each.time_ms,
                "request": each.what,
                "message": each.why,
            }
            for each in latest
        ],
    }


def _environment_document() -> dict[str, object]:
    variables = {
        name: HIDDEN if is_secret(name) else value
        for name, value in sorted(os.environ.items())
        if name.startswith(_VARIABLE_PREFIX)
    }
    return {
        "jvm": {
            "version": f"{platform.python_implementation()} {platform.python_version()}",
            "arch": platform.machine(),
        },
        "python": {"version": sys.version, "executable": sys.executable},
        "version": __version__,
        "protocol": protocol(),
        "variables": variables,
        "classpath": [],
    }


def _log_reader(logs: LogFolder, name: str | None) -> Handler:
    async def send(request: HttpRequest) -> HttpResponse:
        wanted = request.variables["name"] if name is None else name

        async def read(offset: int, limit: int) -> LogPart:
            return await asyncio.to_thread(logs.read, wanted, offset, limit)

        return await log_answer(request, read)

    return send
