"""TaskManagers.

GET /taskmanagers                             all that are registered, with slots, memory and machine; ids of the last
                                              ones that have signed off
GET /taskmanagers/metrics                     names of all; with ?get=a,b aggregates over them
GET /taskmanagers/{taskmanager_id}            one of them
GET /taskmanagers/{taskmanager_id}/metrics    names; with ?get=a,b their values
GET /taskmanagers/{taskmanager_id}/logs       its log files; /logs/{name} one, /log the newest, /stdout its output
GET /taskmanagers/{taskmanager_id}/thread-dump
PATCH /taskmanagers/{taskmanager_id}?mode=drain          202: no more slots are taken, it ends when it is empty
PATCH /taskmanagers/{taskmanager_id}?mode=stop&timeout=s   the same, within so many seconds

Held by: tests/rest/test_process_routes.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from engine.errors import ResourceError
from engine.gateways.insight import (
    INSIGHT_PREFIX,
    ListLogs,
    LogPart,
    ReadLog,
    RequestProcessMetrics,
    RequestThreadDump,
)
from engine.gateways.task_executors import DrainTaskExecutor, ListTaskExecutors, TaskExecutorOverview
from engine.rest.log_files import log_answer, log_list
from engine.rest.metrics_answer import aggregated_metrics_answer, chosen, metrics_answer
from engine.rest.services import RestServices, answer, number_of
from engine.rpc.errors import EndpointUnreachableError
from engine.rpc.gateway import Gateway
from engine.rpc.http_messages import Access, Handler, HttpError, HttpRequest, HttpResponse, Route
from engine.rpc.request import Request

R = TypeVar("R")

#: longest time limit of a drain, seconds
DRAIN_S_MAX = 30 * 86400.0
_PATH = "/taskmanagers/{taskmanager_id}"


def insight_gateway(services: RestServices, executor: TaskExecutorOverview) -> Gateway:
    """Return the gateway to a TaskManager's ProcessInsight; ResourceError when it cannot be reached."""
    if services.connect is None:
        raise ResourceError("other processes cannot be asked from here")
    authority, separator, _ = executor.address.rpartition("/")
    return services.connect(f"{authority}{separator}{INSIGHT_PREFIX}{executor.resource_id}")


async def find_task_executor(services: RestServices, resource_id: str) -> TaskExecutorOverview:
    """Return a TaskManager that is registered; HttpError 404 for anything else."""
    registered = await services.ask_resource_manager(ListTaskExecutors())
    for executor in registered.task_executors:
        if executor.resource_id.value == resource_id:
            return executor
    raise HttpError(404, "no TaskManager of that id is registered")


def taskmanager_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def all_of_them(_: HttpRequest) -> HttpResponse:
        registered = await services.ask_resource_manager(ListTaskExecutors())
        now_ms = services.clock.wall_ms()
        present = [_document(executor, now_ms) for executor in registered.task_executors]
        return answer({"taskmanagers": present, "left": [each.value for each in registered.left]})

    async def one(request: HttpRequest) -> HttpResponse:
        executor = await _executor_of(services, request)
        document = _document(executor, services.clock.wall_ms())
        return answer({**document, "metrics": await _metrics_of(services, executor), "allocatedSlots": []})

    async def change(request: HttpRequest) -> HttpResponse:
        mode = request.query.get("mode", "")
        if mode not in ("drain", "stop"):
            raise HttpError(400, f"mode {mode[:20]!r}: a TaskManager can be drained or stopped (mode=drain, mode=stop)")
        limit_s = number_of(request, "timeout", 0.0, DRAIN_S_MAX) if mode == "stop" else None
        executor = await _executor_of(services, request)
        reason = f"a request to {mode} it"
        await services.ask_resource_manager(DrainTaskExecutor(executor.resource_id, reason, limit_s))
        told = {"mode": mode, **({} if limit_s is None else {"timeout-s": f"{limit_s:g}"})}
        return replace(answer({"id": executor.resource_id.value, "state": "DRAINING"}, 202), audit=told)

    async def metrics_of_all(request: HttpRequest) -> HttpResponse:
        registered = (await services.ask_resource_manager(ListTaskExecutors())).task_executors
        wanted = chosen(request, "taskmanagers")
        asked = [each for each in registered if wanted is None or each.resource_id.value in wanted]
        return aggregated_metrics_answer(
            request, await asyncio.gather(*(_metrics_of(services, executor) for executor in asked))
        )

    async def metrics(request: HttpRequest) -> HttpResponse:
        return metrics_answer(request, (await _asked(services, request, RequestProcessMetrics())).values)

    async def logs(request: HttpRequest) -> HttpResponse:
        return answer(log_list((await _asked(services, request, ListLogs())).files))

    async def thread_dump(request: HttpRequest) -> HttpResponse:
        dump = await _asked(services, request, RequestThreadDump())
        return answer(
            {"threadInfos": [{"threadName": each.name, "stringifiedThreadInfo": each.text} for each in dump.threads]}
        )

    return (
        Route("GET", "/taskmanagers", all_of_them, Access.OPEN_GET),
        Route("GET", "/taskmanagers/metrics", metrics_of_all, Access.OPEN_GET),
        Route("GET", _PATH, one, Access.OPEN_GET),
        Route("PATCH", _PATH, change),
        Route("GET", f"{_PATH}/metrics", metrics, Access.OPEN_GET),
        Route("GET", f"{_PATH}/logs", logs, Access.OPEN_GET),
        Route("GET", f"{_PATH}/logs/{{name}}", _log_reader(services, None), Access.OPEN_GET),
        Route("GET", f"{_PATH}/log", _log_reader(services, ""), Access.OPEN_GET),
        Route("GET", f"{_PATH}/stdout", _log_reader(services, "stdout"), Access.OPEN_GET),
        Route("GET", f"{_PATH}/thread-dump", thread_dump, Access.OPEN_GET),
    )


def _log_reader(services: RestServices, name: str | None) -> Handler:
    """Return the handler that sends the file of that name, or (None) of the name in the path."""

    async def send(request: HttpRequest) -> HttpResponse:
        gateway = insight_gateway(services, await _executor_of(services, request))
        wanted = request.variables["name"] if name is None else name

        async def read(offset: int, limit: int) -> LogPart:
            return await gateway.ask(ReadLog(wanted, offset, limit))

        return await log_answer(request, read)

    return send


async def _executor_of(services: RestServices, request: HttpRequest) -> TaskExecutorOverview:
    return await find_task_executor(services, request.variables["taskmanager_id"])


async def _metrics_of(services: RestServices, executor: TaskExecutorOverview) -> Mapping[str, float]:
    """Return the numbers of a TaskManager's process; none when it is going away."""
    try:
        return (await insight_gateway(services, executor).ask(RequestProcessMetrics())).values
    except (EndpointUnreachableError, ResourceError):
        return {}


async def _asked(services: RestServices, request: HttpRequest, question: Request[R]) -> R:
    return await insight_gateway(services, await _executor_of(services, request)).ask(question)


def _document(executor: TaskExecutorOverview, now_ms: int) -> dict[str, object]:
    """Return a TaskManager under Flink's names."""
    hardware, slots = executor.hardware, executor.slot_count
    free_share = executor.free_slot_count / slots if slots else 0.0
    return {
        "id": executor.resource_id.value,
        "path": executor.address,
        "dataPort": _port_of(executor.data_address),
        "dataAddress": executor.data_address,
        "timeSinceLastHeartbeat": executor.seen_ms,
        "millisSinceLastHeartbeat": max(0, now_ms - executor.seen_ms),
        "slotsNumber": slots,
        "freeSlots": executor.free_slot_count,
        "totalResource": _resource(executor, 1.0),
        "freeResource": _resource(executor, free_share),
        "hardware": {
            "cpuCores": hardware.cpu_cores,
            "physicalMemory": hardware.physical_memory,
            "managedMemory": hardware.managed_memory,
        },
        "memoryConfiguration": {
            "managedMemory": hardware.managed_memory,
            "networkMemory": hardware.network_memory,
            "pageSize": hardware.page_bytes,
        },
        "host": hardware.host,
        "processId": hardware.process_id,
        "version": executor.program.version,
        "protocol": executor.program.protocol,
        "blocked": executor.is_draining,
        "state": "DRAINING" if executor.is_draining else "RUNNING",
    }


def _resource(executor: TaskExecutorOverview, share: float) -> dict[str, object]:
    hardware = executor.hardware
    return {
        "cpuCores": hardware.cpu_cores * share,
        "managedMemory": int(hardware.managed_memory * share) >> 20,
        "networkMemory": int(hardware.network_memory * share) >> 20,
    }


def _port_of(data_address: str) -> int:
    """Return the port in an address such as ``unix:<path>|<host>:<port>``; -1 when it has none."""
    port = data_address.rpartition(":")[2]
    return int(port) if port.isdigit() else -1
