"""Log files that attempts of a job wrote, wherever they ran.

GET /jobs/{job_id}/logs          names and sizes, each with a TaskManager that has it
GET /jobs/{job_id}/logs/{name}   one of them

TaskManagers of one machine share a folder, so several may have the same file; the first one answers.

Held by: tests/rest/test_process_routes.py
"""

from __future__ import annotations

import asyncio

from engine.errors import EngineError, LogNotFoundError
from engine.gateways.insight import ListLogs, LogFile, LogList, LogPart, ReadLog
from engine.gateways.messages import RequestJobStatus
from engine.gateways.task_executors import ListTaskExecutors, TaskExecutorOverview
from engine.ids import JobId
from engine.rest.log_files import log_answer
from engine.rest.services import RestServices, answer, job_id_of
from engine.rest.taskmanager_routes import insight_gateway
from engine.rpc.http_messages import Access, HttpRequest, HttpResponse, Route

#: bytes at the end of a log file that a page shows
_END_BYTES = 16 << 10


def job_log_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def logs(request: HttpRequest) -> HttpResponse:
        job_id = await _known_job(services, request)
        found: dict[str, dict[str, object]] = {}
        for executor, files in await _files_of(services, job_id):
            for file in files.files:
                line = {"name": file.name, "size": file.size_bytes, "mtime": file.modified_ms}
                found.setdefault(file.name, {**line, "taskmanager-id": executor.resource_id.value})
        return answer({"logs": [found[name] for name in sorted(found)]})

    async def log(request: HttpRequest) -> HttpResponse:
        job_id = await _known_job(services, request)
        name = request.variables["name"]
        for executor, files in await _files_of(services, job_id):
            if any(file.name == name for file in files.files):
                gateway = insight_gateway(services, executor)

                async def read(offset: int, limit: int) -> LogPart:
                    return await gateway.ask(ReadLog(name, offset, limit, job_id))  # noqa: B023 - used in this turn

                return await log_answer(request, read)
        raise LogNotFoundError(f"no TaskManager has a log file of that name of job {job_id}")

    return (
        Route("GET", "/jobs/{job_id}/logs", logs, Access.OPEN_GET),
        Route("GET", "/jobs/{job_id}/logs/{name}", log, Access.OPEN_GET),
    )


async def job_log_files(services: RestServices, job_id: JobId) -> list[LogFile]:
    """Return the log files of a job that is known, by name."""
    await services.ask_dispatcher(RequestJobStatus(job_id))
    listed = [file for _, files in await _files_of(services, job_id) for file in files.files]
    return [each for _, each in sorted({file.name: file for file in listed}.items())]


async def job_log_end(services: RestServices, job_id: JobId, name: str) -> str:
    """Return the last lines of a log file of a job; LogNotFoundError when no TaskManager has it."""
    for executor, files in await _files_of(services, job_id):
        if any(file.name == name for file in files.files):
            part = await insight_gateway(services, executor).ask(ReadLog(name, -_END_BYTES, _END_BYTES, job_id))
            text = part.content.decode("utf-8", "replace")
            return text if part.offset == 0 else text.partition("\n")[2]
    raise LogNotFoundError(f"no TaskManager has the log file {name} of job {job_id}")


async def _known_job(services: RestServices, request: HttpRequest) -> JobId:
    job_id = job_id_of(request)
    await services.ask_dispatcher(RequestJobStatus(job_id))
    return job_id


async def _files_of(services: RestServices, job_id: JobId) -> list[tuple[TaskExecutorOverview, LogList]]:
    """Return the files of every TaskManager that answers."""
    registered = (await services.ask_resource_manager(ListTaskExecutors())).task_executors

    async def ask(executor: TaskExecutorOverview) -> LogList:
        try:
            return await insight_gateway(services, executor).ask(ListLogs(job_id))
        except EngineError:
            return LogList(())  # it is going away; the others answer

    return list(zip(registered, await asyncio.gather(*map(ask, registered)), strict=True))
