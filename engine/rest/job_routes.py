"""Jobs from a client's side: submit, follow, cancel.

POST  /jobs                         msgpack of SubmitJob; 202 and {"jobid", "is-new"}: the same job again is not started
GET   /jobs/{job_id}/progress       live numbers
GET   /jobs/{job_id}/outcome        how it ended; waits ``wait`` seconds for that, then 202
PATCH /jobs/{job_id}?mode=cancel    202; 409 when it has ended
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from engine.errors import EngineError, FencedError, ResourceError
from engine.gateways.messages import (
    CancelJob,
    RequestJobOutcome,
    RequestJobProgress,
    RequestJobStatus,
    SubmitJob,
)
from engine.graph.job_graph import USER_KEY
from engine.rest.services import RestServices, answer, decoded, job_id_of, number_of
from engine.rpc.errors import RpcTimeoutError
from engine.rpc.http_messages import Access, HttpError, HttpRequest, HttpResponse, Route
from engine.rpc.principal import Role

#: limit of a JobGraph with its plan, functions and inline data
JOB_GRAPH_BYTES_MAX = 64 << 20
WAIT_S_MAX = 60.0
_ENDED = frozenset({"FINISHED", "FAILED", "CANCELED"})


def job_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def submit(request: HttpRequest) -> HttpResponse:
        message: SubmitJob = decoded(request.body, SubmitJob)
        user = request.principal.name
        if user:
            claimed = message.job_graph.user
            if claimed not in ("", user):
                raise HttpError(
                    400,
                    f"the job names the user {claimed} ({USER_KEY}), and the token is that of {user}, to whom the job "
                    f"would belong: leave {USER_KEY} out, or submit with the token of {claimed}",
                )
            named = {**message.job_graph.configuration, USER_KEY: user}
            message = SubmitJob(msgspec.structs.replace(message.job_graph, configuration=named))
        try:
            message.job_graph.validate()
            reply = await services.ask_dispatcher(message)
        except (ResourceError, FencedError):  # another leader may take it, or this one later
            raise
        except EngineError as error:
            raise HttpError(400, f"{type(error).__name__}: {error}") from error
        told = {"job": reply.job_id.value, "name": message.job_graph.name, "is-new": str(reply.is_new).lower()}
        return replace(answer({"jobid": reply.job_id.value, "is-new": reply.is_new}, 202), audit=told)

    async def progress(request: HttpRequest) -> HttpResponse:
        return answer(await services.ask_dispatcher(RequestJobProgress(job_id_of(request))))

    async def outcome(request: HttpRequest) -> HttpResponse:
        job_id = job_id_of(request)
        wait_s = number_of(request, "wait", 0.0, WAIT_S_MAX)
        try:
            return answer(await services.ask_dispatcher(RequestJobOutcome(job_id), max(wait_s, 0.001)))
        except RpcTimeoutError:
            return answer(await services.ask_dispatcher(RequestJobStatus(job_id)), 202)

    async def change(request: HttpRequest) -> HttpResponse:
        job_id = job_id_of(request)
        mode = request.query.get("mode", "cancel")
        if mode != "cancel":
            raise HttpError(400, f"mode {mode[:20]!r}: a job can only be cancelled (mode=cancel)")
        job = await services.ask_dispatcher(RequestJobStatus(job_id))
        principal = request.principal
        if principal.name and principal.role < Role.ADMIN and principal.name != job.user:
            whose = f"belongs to {job.user}" if job.user else "belongs to no user"
            raise HttpError(403, f"job {job_id} {whose}: {principal.name} may cancel its own jobs only")
        status = job.status
        if status in _ENDED:
            raise HttpError(409, f"job {job_id} has ended already: {status}")
        await services.ask_dispatcher(CancelJob(job_id))
        return answer({}, 202)

    return (
        Route("POST", "/jobs", submit, body_limit=JOB_GRAPH_BYTES_MAX, is_internal=True),
        Route("GET", "/jobs/{job_id}/progress", progress, Access.OPEN_GET),
        Route("GET", "/jobs/{job_id}/outcome", outcome, Access.OPEN_GET),
        Route("PATCH", "/jobs/{job_id}", change, Access.CANCEL),
    )
