"""Registration: keeps a TaskExecutor registered at the leader.

    find the leader ─► register ─► hold a call open there ... it ends ─► pause ─► find the leader ...
         └─ none   ─► pause: 100 ms, doubled up to 10 s

The held call ends at once when the JobManager's process does, so the next one is looked for without waiting for
heartbeats. A TaskExecutor without a leader for ``timeout_s`` gives up, in the midst of an attempt or a pause, too:
RegistrationError.

How the leader is found is the caller's: a fixed address that is asked, or a watch on a quorum.

Source: Flink's RetryingRegistration and EstablishedResourceManagerConnection.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from engine.clock import Clock
from engine.errors import EngineError, ResourceError
from engine.taskexecutor.task_executor import TaskExecutor

_log = logging.getLogger(__name__)


class Leader(NamedTuple):
    """The leader: the address of its ResourceManager, and its epoch."""

    resource_manager_address: str
    epoch: int


class LeaderFinder(Protocol):
    """Finds the leader."""

    async def find(self) -> Leader:
        """Return the present leader; raises EngineError when there is none."""
        ...


class RegistrationError(ResourceError):
    """No JobManager took this TaskManager for too long."""


@dataclass(frozen=True)
class RegistrationSettings:
    """Times in seconds."""

    first_pause_s: float
    last_pause_s: float
    timeout_s: float


class Registration:
    """The registration of one TaskExecutor; ``run`` never returns."""

    def __init__(
        self,
        task_executor: TaskExecutor,
        finder: LeaderFinder,
        settings: RegistrationSettings,
        clock: Clock,
        on_registered: Callable[[Leader], None],
        on_refused: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self._task_executor = task_executor
        self._finder = finder
        self._settings = settings
        self._clock = clock
        self._on_registered = on_registered
        self._on_refused = on_refused
        self._pause_s = settings.first_pause_s
        self._connected_s = clock.monotonic_s()
        self._last_reason = ""
        self._is_new = asyncio.Event()

    def leader_changed(self) -> None:
        """Look for the leader at once: it is another one. On the event loop."""
        self._pause_s = self._settings.first_pause_s
        self._is_new.set()

    async def run(self) -> None:
        """Register, stay registered, and register again; raises RegistrationError after the time-out."""
        while True:
            self._is_new.clear()
            try:
                await self._until_new(self._connect_and_stay())
            except EngineError as error:
                self._note(error)
            left_s = self._left_s()
            if left_s <= 0:
                raise RegistrationError(
                    f"no JobManager took this TaskManager for {self._settings.timeout_s - left_s:.0f} s: "
                    f"{self._last_reason or 'none answered'}"
                )
            # A little apart, so that all TaskManagers do not come back at the same moment.
            pause_s = self._pause_s * random.uniform(0.75, 1.0)  # noqa: S311
            await self._until_new(asyncio.sleep(min(pause_s, left_s)))
            self._pause_s = min(self._pause_s * 2, self._settings.last_pause_s)

    async def _until_new(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something until it is done, or until another one leads."""
        doing = asyncio.ensure_future(work)
        changing = asyncio.ensure_future(self._is_new.wait())
        try:
            await asyncio.wait({doing, changing}, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                doing.result()
        finally:
            for future in (doing, changing):
                future.cancel()
            await asyncio.gather(doing, changing, return_exceptions=True)

    async def _connect_and_stay(self) -> None:
        try:
            async with asyncio.timeout(self._left_s()):
                leader = await self._finder.find()
                await self._task_executor.connect(leader.resource_manager_address, leader.epoch)
        except TimeoutError:
            return  # given up, for the reason that was there before
        _log.info("registered at %s under epoch %d", leader.resource_manager_address, leader.epoch)
        self._last_reason = ""
        self._on_registered(leader)
        while True:
            self._pause_s = self._settings.first_pause_s
            self._connected_s = self._clock.monotonic_s()
            await self._task_executor.stay_connected()

    def _left_s(self) -> float:
        """Return the time until it gives up."""
        return self._settings.timeout_s - (self._clock.monotonic_s() - self._connected_s)

    def _note(self, error: EngineError) -> None:
        """Log a reason once, not at every attempt."""
        reason = f"{type(error).__name__}: {error}"
        if reason != self._last_reason:
            _log.warning("not registered: %s", error)
            self._on_refused(str(error))
        self._last_reason = reason
