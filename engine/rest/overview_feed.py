"""OverviewFeed: what the overview shows, asked once for all that look at it, and sent to browsers as it changes.

    snapshot()   jobs, TaskManagers with what they use, JobManagers: at most one question in ``_FRESH_S``
    events(...)  text/event-stream: parts of the page that have changed, every 2 s; a comment in each 15 s of silence

Nothing runs while no page listens. At most ``LISTENERS_MAX`` listen at one time: another one is told to come later, and
its page loads itself again instead. A stream ends after ten minutes, or when this process leads no more, and the
browser connects again. When a browser goes away its handler is cancelled, and the stream is closed.

Held by: tests/rest/test_overview_events.py
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, NamedTuple

from engine.errors import EngineError
from engine.gateways.insight import RequestProcessMetrics
from engine.gateways.leader import LEADER_ADDRESS
from engine.gateways.messages import JobList, ListJobs, RequestLeader
from engine.gateways.task_executors import ListTaskExecutors, TaskExecutorList, TaskExecutorOverview
from engine.rest.services import RestServices
from engine.rest.taskmanager_routes import insight_gateway
from engine.rpc.errors import EndpointUnreachableError, RpcTimeoutError
from engine.rpc.http_messages import HttpError, HttpResponse

LISTENERS_MAX: Final = 32
EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
_FRESH_S = 1.5
_PAUSE_S = 2.0
_SILENCE_S = 15.0
_LIFE_S = 600.0
#: seconds that a process has to answer; one that hangs does not hold up the page
_ANSWER_S = 0.8
#: TaskManagers whose numbers are asked for
_ASKED_MAX = 100


class Snapshot(NamedTuple):
    """A cluster at one moment. A process that did not answer has no numbers."""

    now_ms: int
    jobs: JobList
    executors: TaskExecutorList
    used: Mapping[str, Mapping[str, float]]
    #: metrics of this process
    own: Mapping[str, float]
    #: addresses of JobManagers with whether they answer, where several are configured
    job_managers: tuple[tuple[str, bool], ...] = ()


#: function that makes the parts of a page, HTML by the id of its element
Parts = Callable[[Snapshot], Mapping[str, str]]


class OverviewFeed:
    """Snapshots of one cluster. Thread: the event loop."""

    def __init__(self, services: RestServices) -> None:
        self._services = services
        self._turn = asyncio.Lock()
        self._known: Snapshot | None = None
        self._known_s = 0.0
        self.listener_count = 0

    async def snapshot(self) -> Snapshot:
        """Return the cluster as it is, or was a moment ago."""
        async with self._turn:
            now_s = self._services.clock.monotonic_s()
            if self._known is None or now_s - self._known_s > _FRESH_S:
                self._known = await self._look()
                self._known_s = now_s
            return self._known

    async def _look(self) -> Snapshot:
        services = self._services
        jobs = await services.ask_dispatcher(ListJobs())
        executors = await services.ask_resource_manager(ListTaskExecutors())
        asked = executors.task_executors[:_ASKED_MAX]
        addresses = services.job_managers()
        used, answers = await asyncio.gather(
            asyncio.gather(*(self._used(each) for each in asked)),
            asyncio.gather(*(self._answers(each) for each in addresses)),
        )
        return Snapshot(
            services.clock.wall_ms(),
            jobs,
            executors,
            {each.resource_id.value: values for each, values in zip(asked, used, strict=True)},
            services.meter.read(),
            tuple(zip(addresses, answers, strict=True)),
        )

    async def _used(self, executor: TaskExecutorOverview) -> Mapping[str, float]:
        try:
            return (await insight_gateway(self._services, executor).ask(RequestProcessMetrics(), _ANSWER_S)).values
        except EngineError:
            return {}

    async def _answers(self, address: str) -> bool:
        """Return whether a JobManager is there: standbys, too, are asked for the leader."""
        if self._services.connect is None:
            return False
        try:
            await self._services.connect(f"{address}/{LEADER_ADDRESS}").ask(RequestLeader(), _ANSWER_S)
        except (EndpointUnreachableError, RpcTimeoutError):
            return False
        except EngineError:
            return True  # it answers, and knows no leader
        return True

    async def events(self, parts: Parts) -> HttpResponse:
        """Return a stream of parts as they change; HttpError 503 when as many listen as may."""
        if self.listener_count >= LISTENERS_MAX:
            raise HttpError(503, f"{LISTENERS_MAX} pages listen already: this one loads itself again")
        await self.snapshot()  # an error is an answer with its status
        return HttpResponse(content_type=EVENT_STREAM, parts=_Events(self, parts))


class _Events:
    """One listener's stream."""

    def __init__(self, feed: OverviewFeed, parts: Parts) -> None:
        self._feed = feed
        self._parts = parts
        feed.listener_count += 1
        self._is_listening = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        shown: Mapping[str, str] = {}
        begun_s = told_s = loop.time()
        while loop.time() - begun_s < _LIFE_S:
            try:
                parts = self._parts(await self._feed.snapshot())
            except EngineError:
                return  # it leads no more: the browser asks again, and another one answers
            changed = {name: content for name, content in parts.items() if shown.get(name) != content}
            shown = parts
            if changed:
                yield f"data: {json.dumps(changed)}\n\n".encode()
                told_s = loop.time()
            elif loop.time() - told_s >= _SILENCE_S:
                yield b": still here\n\n"
                told_s = loop.time()
            await asyncio.sleep(_PAUSE_S)

    async def aclose(self) -> None:
        """Listen no more; idempotent."""
        if self._is_listening:
            self._is_listening = False
            self._feed.listener_count -= 1
