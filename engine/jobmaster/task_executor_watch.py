"""TaskExecutorWatch: the TaskExecutors that ever gave a job a slot, and their signs of life.

    watch(resource_id, address) ─► run(): asks every one of them again and again ─► on_lost(resource_id, reason)
        look_after(resource_id) ─► asks one at once: does it answer?     forget(resource_id)

Where connections are refused, twice, a TaskExecutor is lost at once, and one that refuses the JobMaster (its clock, its
secret, its version is another one) is, too: neither can be told anything. One that is silent has until the time-out. On
the JobMaster's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from engine.clock import Clock
from engine.errors import EngineError
from engine.gateways.messages import Heartbeat
from engine.ids import ResourceId
from engine.rpc.errors import REFUSES_ALL, EndpointUnreachableError, UntrustedReplyError
from engine.rpc.gateway import RpcService
from engine.rpc.heartbeat import HeartbeatMonitor

#: refused connections in a row after which a TaskExecutor counts as lost
_UNREACHABLE_MAX = 2


class TaskExecutorWatch:
    """Heartbeats from one JobMaster.

    Args:
        sender, epoch: those of the JobMaster.
        interval_s, timeout_s: time between questions, and silence after which one counts as lost.
        spawn: runs work beside the JobMaster's handlers.
        on_lost: told of a TaskExecutor that is silent.
    """

    def __init__(
        self,
        rpc: RpcService,
        sender: str,
        epoch: int,
        interval_s: float,
        timeout_s: float,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
        on_lost: Callable[[ResourceId, str], None],
    ) -> None:
        self._rpc = rpc
        self._sender = sender
        self._epoch = epoch
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._spawn = spawn
        self._on_lost = on_lost
        self._monitor = HeartbeatMonitor[ResourceId](interval_s, timeout_s, clock)
        self._addresses: dict[ResourceId, str] = {}
        self._suspected: set[ResourceId] = set()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses of those that are there."""
        return tuple(self._addresses.values())

    def watch(self, resource_id: ResourceId, address: str) -> None:
        """Watch a TaskExecutor from now on; again is no news."""
        if resource_id not in self._addresses:
            self._addresses[resource_id] = address
            self._monitor.watch(resource_id)

    async def look_after(self, resource_id: ResourceId) -> bool:
        """Ask a TaskExecutor at once, unless that is being done, whether it answers: something speaks against it."""
        if resource_id not in self._addresses or resource_id in self._suspected:
            return False
        self._suspected.add(resource_id)
        try:
            return await self._ask(resource_id)
        finally:
            self._suspected.discard(resource_id)

    def forget(self, resource_id: ResourceId) -> None:
        """Take note that a TaskExecutor is gone."""
        self._monitor.unwatch(resource_id)
        self._addresses.pop(resource_id, None)

    async def run(self) -> None:
        """Ask all, for ever."""
        while True:
            await asyncio.sleep(self._interval_s)
            for resource_id in self._monitor.poll():
                self._on_lost(resource_id, "it has not answered heartbeats")
            for resource_id in self._monitor.targets:
                self._spawn(self._heartbeat(resource_id), f"heartbeat to {resource_id}")

    async def _heartbeat(self, resource_id: ResourceId) -> None:
        await self._ask(resource_id)

    async def _ask(self, resource_id: ResourceId) -> bool:
        """Ask a TaskExecutor; where it cannot be reached, twice, it is lost. Return whether it answers."""
        reason = ""
        for _ in range(_UNREACHABLE_MAX):
            if resource_id not in self._addresses:
                return False
            try:
                gateway = self._rpc.connect(self._addresses[resource_id], self._epoch)
                await gateway.ask(Heartbeat(self._sender), self._timeout_s)
            except UntrustedReplyError:
                return False  # it can be reached; an answer that cannot be trusted is no sign of life either
            except EndpointUnreachableError:
                reason = "nothing answers at its address"
            except REFUSES_ALL as error:
                reason = str(error)
            except EngineError:
                return False
            else:
                self._monitor.received(resource_id)
                return True
        if resource_id in self._addresses:
            self._on_lost(resource_id, reason)
        return False
