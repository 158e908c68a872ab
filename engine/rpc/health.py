"""/healthz and /readyz of a process: what orchestrators and load balancers ask, without a credential.

    GET /healthz    200 ok          the process answers
    GET /readyz     200 ok          it can do its work: it leads or knows the leader, is registered, serves
                    503 not ready: REASON

They are open to all, under whatever name the process is asked for, also beyond loopback: so they say nothing else, and
the reason is one of the words of ``NotReady``.

Held by: tests/rpc/test_health.py
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final

from engine.rpc.http_messages import Access, HttpRequest, HttpResponse, Route

HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
_UNAVAILABLE: Final = 503


class NotReady(enum.Enum):
    """Reasons why a process cannot do its work yet."""

    #: state of a process whose parts are not there yet
    STARTING = "starting"
    #: state of a JobManager that neither leads nor knows the leader
    NO_LEADER = "no-leader"
    #: state of a TaskManager that no JobManager has taken
    NOT_REGISTERED = "not-registered"
    #: state of a process that was asked to end
    STOPPING = "stopping"


class Health:
    """The health of a process; its daemon sets ``why_not_ready`` when its parts are there."""

    def __init__(self) -> None:
        #: question for the reason; None: the process is ready
        self.why_not_ready: Callable[[], NotReady | None] = lambda: NotReady.STARTING

    @property
    def routes(self) -> tuple[Route, ...]:
        """The two routes."""
        return (
            Route("GET", HEALTH_PATH, self._alive, Access.ANYONE, 0),
            Route("GET", READY_PATH, self._ready, Access.ANYONE, 0),
        )

    async def _alive(self, request: HttpRequest) -> HttpResponse:
        return _text(200, "ok")

    async def _ready(self, request: HttpRequest) -> HttpResponse:
        reason = self.why_not_ready()
        return _text(200, "ok") if reason is None else _text(_UNAVAILABLE, f"not ready: {reason.value}")


def _text(status: int, text: str) -> HttpResponse:
    return HttpResponse(status, f"{text}\n".encode(), "text/plain")
