"""Pages of processes: a TaskManager, this JobManager; and the log files of a job.

Each shows what the process uses, its log files and where its threads are; the JobManager's also its configuration.

Held by: tests/rest/test_status_pages.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from engine import __version__
from engine.gateways.insight import (
    ListLogs,
    LogFile,
    LogList,
    ProcessMetrics,
    RequestProcessMetrics,
    RequestThreadDump,
    ThreadDump,
    ThreadInfo,
)
from engine.gateways.protocol import protocol
from engine.gateways.task_executors import TaskExecutorOverview
from engine.ids import JobId
from engine.insight.thread_dump import thread_dump
from engine.rest.jobmanager_routes import config_document
from engine.rest.services import RestServices
from engine.rest.taskmanager_routes import find_task_executor, insight_gateway
from engine.rpc.errors import EndpointUnreachableError
from engine.rpc.refusals import REFUSALS
from engine.rpc.request import Request
from engine.shown_pages import Html, cards, link, page, table, tag
from engine.shown_quantities import bytes_text, count_text, duration_text, time_text

R = TypeVar("R")


async def task_manager_page(services: RestServices, resource_id: str) -> Html:
    """Return the page of a registered TaskManager; when it does not answer, with what the JobManager knows."""
    executor = await find_task_executor(services, resource_id)

    async def ask(question: Request[R], otherwise: R) -> R:
        try:
            return await insight_gateway(services, executor).ask(question)
        except EndpointUnreachableError:
            return otherwise

    metrics, logs, threads = await asyncio.gather(
        ask(RequestProcessMetrics(), ProcessMetrics({})),
        ask(ListLogs(), LogList(())),
        ask(RequestThreadDump(), ThreadDump(())),
    )
    path = f"/taskmanagers/{executor.resource_id}"
    return _process_page(
        f"TaskManager {executor.resource_id.value[:8]}",
        f"{executor.resource_id} at {executor.address.rpartition('/')[0] or executor.address}",
        (
            ("free slots", f"{executor.free_slot_count} of {executor.slot_count}"),
            *_resources(executor),
            *_used(metrics.values),
        ),
        _log_links(path, logs.files),
        path,
        threads.threads,
    )


async def job_manager_page(services: RestServices) -> Html:
    """Return the page of this process."""
    files = await asyncio.to_thread(services.logs.files)
    settings = ((tag("code", each["key"]), each["value"], each["origin"]) for each in _settings(services))
    name = "History server" if services.is_history else "JobManager"
    return _process_page(
        name,
        "this process",
        (("version", __version__), ("protocol", protocol()), *_used(services.meter.read())),
        _log_links("/jobmanager", files),
        "/jobmanager",
        thread_dump(),
        *_refused(),
        tag("h2", "Configuration"),
        table(f"configuration of the {name}", ("key", "value*", "comes from*"), settings),
    )


def log_files_page(job_id: JobId, files: Sequence[LogFile]) -> Html:
    """Return the list of a job's log files."""
    return page(
        "Log files – Drey",
        tag("p", link(f"/jobs/{job_id}/page", "← the job")),
        tag("h1", "Log files"),
        tag("div", "of the attempts of job ", tag("code", job_id), ": v<vertex>-<subtask>-<attempt>", class_="quiet"),
        _files_table(f"/jobs/{job_id}/logs", files) if files else _no_files(),
    )


def _refused() -> tuple[Html, ...]:
    """Return the callers that this process has refused last, where there are any."""
    rows = [
        (each.address, each.reason.value, each.count, time_text(each.time_ms), each.what, each.why)
        for each in REFUSALS.latest
    ]
    if not rows:
        return ()
    heads = ("address*", "because of", "times#", "last!", "request*", "why*")
    return tag("h2", "Refused"), table("callers that were refused", heads, rows)


def _settings(services: RestServices) -> list[dict[str, object]]:
    """Return all settings; those that were changed come first."""
    return sorted(config_document(services.configuration), key=lambda each: each["origin"] == "default")


def _process_page(
    name: str,
    where: str,
    numbers: Iterable[tuple[str, object]],
    logs: Html,
    path: str,
    threads: Sequence[ThreadInfo],
    *further: Html,
) -> Html:
    listed = (tag("details", tag("summary", each.name), tag("pre", each.text, tabindex=0)) for each in threads)
    return page(
        f"{name} – Drey",
        tag("p", link("/", "← all jobs")),
        tag("h1", name),
        tag("div", where, class_="quiet"),
        cards(numbers),
        tag("h2", "Log files"),
        logs,
        tag("h2", "Threads"),
        tag("p", link(f"{path}/flame-graph", "flame graph of the next 5 s"), ": what their time goes into"),
        *listed,
        *further,
    )


def _resources(executor: TaskExecutorOverview) -> tuple[tuple[str, object], ...]:
    hardware = executor.hardware
    return (
        ("version", executor.program.version),
        ("protocol", executor.program.protocol),
        ("processors", hardware.cpu_cores),
        ("managed memory", bytes_text(hardware.managed_memory)),
        ("network memory", bytes_text(hardware.network_memory)),
        ("memory of the machine", bytes_text(hardware.physical_memory)),
    )


def _used(metrics: Mapping[str, float]) -> tuple[tuple[str, object], ...]:
    if not metrics:
        return (("does not answer", "?"),)
    return (
        ("resident memory", bytes_text(metrics["Status.Process.Memory.Resident"])),
        ("processor time", duration_text(int(metrics["Status.Process.CPU.Time"] * 1000))),
        ("runs for", duration_text(int(metrics["Status.Process.Uptime"] * 1000))),
        ("threads", count_text(int(metrics["Status.Process.Threads.Count"]))),
        ("open files", count_text(int(metrics["Status.Process.FileDescriptors.Count"]))),
    )


def _log_links(path: str, files: Sequence[LogFile]) -> Html:
    if not files:
        return _no_files()
    newest = tag("p", link(f"{path}/log", "the newest log"), " · ", link(f"{path}/stdout", "standard output"))
    return tag("div", newest, _files_table(f"{path}/logs", files))


def _no_files() -> Html:
    return tag("p", "There are none.", class_="quiet")


def _files_table(path: str, files: Sequence[LogFile]) -> Html:
    rows = (
        (link(f"{path}/{file.name}", file.name), bytes_text(file.size_bytes), time_text(file.modified_ms))
        for file in files
    )
    return table("log files", ("file*", "size#", "written last!"), rows)
