"""RestServices: what the handlers of the REST API ask, and how their answers are made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from engine.clock import Clock, SystemClock
from engine.config.loader import Configuration
from engine.errors import FencedError, JobNotFoundError, LogNotFoundError, ResourceError
from engine.ids import JobId
from engine.insight.log_folder import LogFolder
from engine.insight.process_meter import ProcessMeter
from engine.insight.stack_sampler import StackSampler
from engine.rpc.errors import RpcTimeoutError
from engine.rpc.gateway import ASK_TIMEOUT_S, Gateway
from engine.rpc.http_messages import Handler, HttpError, HttpRequest, HttpResponse
from engine.rpc.request import Request

R = TypeVar("R")


@dataclass(frozen=True)
class RestServices:
    """Gateways to the components that lead now; an EngineError when there are none."""

    dispatcher: Callable[[], Gateway]
    resource_manager: Callable[[], Gateway]
    configuration: Configuration = field(default_factory=Configuration)
    clock: Clock = field(default_factory=SystemClock)
    #: log files of this process
    logs: LogFolder = field(default_factory=lambda: LogFolder(None))
    #: metrics of this process
    meter: ProcessMeter = field(default_factory=ProcessMeter)
    #: function that connects to a component of another process by its address; None: there is no other process
    connect: Callable[[str], Gateway] | None = None
    #: function that returns the addresses of other JobManagers, as far as they are configured here
    job_managers: Callable[[], tuple[str, ...]] = tuple
    #: callback that ends this process; None: requests cannot end it
    shut_down: Callable[[], None] | None = None
    #: samples of the stacks of this process
    stacks: StackSampler = field(default_factory=StackSampler)

    @property
    def is_history(self) -> bool:
        """Whether only jobs that have ended are known here, and no TaskManagers."""
        return self.connect is None

    async def ask_dispatcher(self, request: Request[R], timeout_s: float | None = ASK_TIMEOUT_S) -> R:
        """Ask the Dispatcher."""
        return await self.dispatcher().ask(request, timeout_s)

    async def ask_resource_manager(self, request: Request[R], timeout_s: float | None = ASK_TIMEOUT_S) -> R:
        """Ask the ResourceManager."""
        return await self.resource_manager().ask(request, timeout_s)


def explained(handler: Handler) -> Handler:
    """Return the handler, with the errors of components that it meets as answers.

    404: an unknown job or log file; 503: no JobManager leads, or a process is gone; 504: no answer came in time.
    """

    @functools.wraps(handler)
    async def answered(request: HttpRequest) -> HttpResponse:
        try:
            return await handler(request)
        except (JobNotFoundError, LogNotFoundError) as error:
            raise HttpError(404, str(error)) from error
        except RpcTimeoutError as error:
            raise HttpError(504, str(error)) from error
        except (ResourceError, FencedError) as error:
            raise HttpError(503, str(error)) from error

    return answered


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
        raise HttpError(400, f"{name} must be between 0 and {maximum:g}")
    return value


def decoded(body: bytes, kind: Any) -> Any:
    """Return a msgpack body as typed data; HttpError 400 when it is not."""
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HttpError(400, f"the body is not a {kind.__name__}: {error}") from error
