"""RestServices: what the handlers of the REST API ask, and how their answers are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from engine.errors import JobNotFoundError
from engine.ids import JobId
from engine.rpc.gateway import Gateway
from engine.rpc.http_messages import HttpError, HttpRequest, HttpResponse
from engine.rpc.request import Request

R = TypeVar("R")


@dataclass(frozen=True)
class RestServices:
    """Gateways to the components that lead now; an EngineError when nobody does."""

    dispatcher: Callable[[], Gateway]
    resource_manager: Callable[[], Gateway]

    async def ask_dispatcher(self, request: Request[R], timeout_s: float | None = 10.0) -> R:
        """Ask the Dispatcher; HttpError 404 for a job that nobody knows."""
        try:
            return await self.dispatcher().ask(request, timeout_s)
        except JobNotFoundError as error:
            raise HttpError(404, str(error)) from error


def answer(value: object, status: int = 200) -> HttpResponse:
    """Return an answer of typed data as JSON."""
    return HttpResponse(status, msgspec.json.encode(value))


def job_id_of(request: HttpRequest) -> JobId:
    """Return the job id of the path; HttpError 400 for anything else."""
    text = request.variables["job_id"]
    if len(text) != 32 or any(digit not in "0123456789abcdef" for digit in text):
        raise HttpError(400, "a job id has 32 digits 0-9 and a-f")
    return JobId(text)


def number_of(request: HttpRequest, name: str, default: float, maximum: float) -> float:
    """Return a number of the query, at most ``maximum``; HttpError 400 when it is none."""
    text = request.query.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError as error:
        raise HttpError(400, f"{name} is not a number") from error
    if not 0 <= value <= maximum:
        raise HttpError(400, f"{name} must lie between 0 and {maximum:g}")
    return value


def decoded(body: bytes, kind: Any) -> Any:
    """Return a msgpack body as typed data; HttpError 400 when it is not."""
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise HttpError(400, f"the body is not a {kind.__name__}: {error}") from error
