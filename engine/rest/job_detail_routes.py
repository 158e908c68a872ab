"""One job in detail, and the numbers of several together.

GET /jobs/{job_id}     and /status /config /exceptions /plan /execution-result /accumulators /metrics
                       and /profile: everything about its run in one document (engine.profile)
GET /jobs/metrics      names of all; with ?get=a,b aggregates over all jobs, or those of ?jobs=
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from engine.config.secret_keys import shown_settings
from engine.errors import JobNotFoundError
from engine.gateways.job_details import JobDetails, RequestJobDetails, RequestJobExceptions
from engine.gateways.messages import ListJobs, RequestJobStatus
from engine.profile.profile_making import profile_of
from engine.rest.job_details import job_details
from engine.rest.job_document import (
    accumulators,
    duration_ms,
    exceptions_document,
    job_document,
    plan_document,
    result_document,
)
from engine.rest.metrics_answer import aggregated_metrics_answer, chosen, metrics_answer
from engine.rest.services import RestServices, answer, job_id_of, number_of
from engine.rpc.http_messages import Access, Handler, HttpRequest, HttpResponse, Route

_JOB = "/jobs/{job_id}"
_EXCEPTIONS_SHOWN = 20
_EXCEPTIONS_MAX = 1000


def job_detail_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    def of_job(document: Callable[[JobDetails, int], object]) -> Handler:
        async def handler(request: HttpRequest) -> HttpResponse:
            return answer(document(await job_details(services, request), services.clock.wall_ms()))

        return handler

    async def status(request: HttpRequest) -> HttpResponse:
        overview = await services.ask_dispatcher(RequestJobStatus(job_id_of(request)))
        return answer({"status": overview.status})

    async def exceptions(request: HttpRequest) -> HttpResponse:
        limit = int(number_of(request, "maxExceptions", _EXCEPTIONS_SHOWN, _EXCEPTIONS_MAX))
        known = await services.ask_dispatcher(RequestJobExceptions(job_id_of(request)))
        return answer(exceptions_document(known.failures, is_truncated=known.is_truncated, limit=limit))

    async def profile(request: HttpRequest) -> HttpResponse:
        details, now_ms = await job_details(services, request), services.clock.wall_ms()
        return await asyncio.to_thread(lambda: answer(profile_of(details, now_ms)))

    async def metrics(request: HttpRequest) -> HttpResponse:
        return metrics_answer(request, _job_metrics(await job_details(services, request), services.clock.wall_ms()))

    async def metrics_of_all(request: HttpRequest) -> HttpResponse:
        wanted, now_ms, each = chosen(request, "jobs"), services.clock.wall_ms(), []
        for job in (await services.ask_dispatcher(ListJobs())).jobs:
            if wanted is None or job.job_id.value in wanted:
                with contextlib.suppress(JobNotFoundError):  # it was forgotten meanwhile
                    each.append(_job_metrics(await services.ask_dispatcher(RequestJobDetails(job.job_id)), now_ms))
        return aggregated_metrics_answer(request, each)

    table: tuple[tuple[str, Handler], ...] = (
        ("/jobs/metrics", metrics_of_all),
        (_JOB, of_job(job_document)),
        (f"{_JOB}/status", status),
        (f"{_JOB}/config", of_job(_config_document)),
        (f"{_JOB}/exceptions", exceptions),
        (f"{_JOB}/plan", of_job(lambda job, _: {"plan": plan_document(job)})),
        (f"{_JOB}/execution-result", of_job(lambda job, _: result_document(job))),
        (f"{_JOB}/accumulators", of_job(_accumulators_document)),
        (f"{_JOB}/metrics", metrics),
        (f"{_JOB}/profile", profile),
    )
    return tuple(Route("GET", path, handler, Access.OPEN_GET) for path, handler in table)


def _config_document(job: JobDetails, _: int) -> dict[str, object]:
    return {
        "jid": job.job_id.value,
        "name": job.name,
        "execution-config": {
            "execution-mode": job.configuration.get("execution.mode", "BATCH"),
            "restart-strategy": job.configuration.get("restart-strategy.type", "that of the cluster"),
            "job-parallelism": max((vertex.parallelism for vertex in job.vertices), default=-1),
            "object-reuse-mode": False,
            "user-config": shown_settings(job.configuration),
        },
    }


def _accumulators_document(job: JobDetails, _: int) -> dict[str, object]:
    attempts = (attempt for vertex in job.vertices for attempt in vertex.subtasks)
    return {
        "job-accumulators": [],
        "user-task-accumulators": accumulators(attempts),
        "serialized-user-task-accumulators": {},
    }


def _job_metrics(job: JobDetails, now_ms: int) -> dict[str, float]:
    prior = [attempt for vertex in job.vertices for attempt in vertex.prior]
    current = [attempt.counters for vertex in job.vertices for attempt in vertex.subtasks]
    return {
        "runtime": float(duration_ms(job.start_ms, job.end_ms, now_ms)),
        "numRestarts": float(max((attempt.attempt + 1 for attempt in prior), default=0)),
        "numFailures": float(len(job.failures)),
        "numBytesSpilled": float(sum(counters.spilled_bytes for counters in current)),
        "numStoreRequests": float(sum(counts[0] for counters in current for counts in counters.stores.values())),
    }
