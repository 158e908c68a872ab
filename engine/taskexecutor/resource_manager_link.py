"""ResourceManagerLink: what a TaskExecutor says to the ResourceManager that leads, and whether that one is there.

    register(slots, jobs) ─► stay_connected * ─► tell_free(slot) * ─► disconnect(reason)

Source: the connection to the ResourceManager in Flink's TaskExecutor.
Held by: tests/taskexecutor/test_registration.py
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from engine.clock import Clock
from engine.errors import EngineError
from engine.gateways.messages import (
    DisconnectTaskExecutor,
    NotifySlotFree,
    RegisterTaskExecutor,
    SlotStatus,
    StayConnected,
)
from engine.gateways.task_executors import TaskExecutorHardware
from engine.ids import AllocationId, JobId, ResourceId
from engine.rpc.fencing import FollowerFence
from engine.rpc.gateway import Gateway, RpcService
from engine.rpc.program import Program

_log = logging.getLogger(__name__)

#: seconds that an ending process takes to sign off at the ResourceManager
_LEAVE_S = 2.0


class ResourceManagerLink:
    """The link of one TaskExecutor to the ResourceManager, under the epoch of the leader.

    Args:
        resource_id, address: of the TaskExecutor.
        fence: knows the epoch in force.
    """

    def __init__(
        self, resource_id: ResourceId, address: str, rpc: RpcService, fence: FollowerFence, clock: Clock
    ) -> None:
        self._resource_id = resource_id
        self._address = address
        self._rpc = rpc
        self._fence = fence
        self._clock = clock
        self._resource_manager = ""
        #: epoch of the leader at which this TaskExecutor last registered, 0 before
        self.registered_epoch = 0
        #: True if the ResourceManager is there, as far as is known
        self.is_led = False

    def lead_by(self, resource_manager_address: str) -> None:
        """Speak to this ResourceManager from now on."""
        self._resource_manager = resource_manager_address

    def registered(self, epoch: int) -> None:
        """Take note that the leader of an epoch knows this TaskExecutor."""
        self.registered_epoch, self.is_led = epoch, True

    async def register(
        self,
        slots: tuple[SlotStatus, ...],
        jobs: Iterable[JobId],
        data_address: str,
        hardware: TaskExecutorHardware,
        program: Program,
        *,
        is_draining: bool,
    ) -> set[JobId]:
        """Report slots and jobs to the ResourceManager; return the jobs that are unknown there."""
        address, now_ms = self._rpc.address_of(self._address), self._clock.wall_ms()
        request = RegisterTaskExecutor(
            self._resource_id, address, slots, data_address, hardware, tuple(sorted(jobs)), now_ms, program, is_draining
        )
        reply = await self._gateway().ask(request)
        if reply.clock_note:
            _log.warning("%s", reply.clock_note)
        return set(reply.unknown_jobs)

    async def stay_connected(self, timeout_s: float) -> None:
        """Hold a call at the ResourceManager for a heartbeat's interval; raises EngineError when it is not there."""
        try:
            await self._gateway().ask(StayConnected(self._resource_id), timeout_s)
        except EngineError:
            self.is_led = False
            raise

    async def disconnect(self, reason: str) -> None:
        """Tell the ResourceManager that this TaskExecutor leaves, if it can be reached."""
        if not self.registered_epoch:
            return
        try:
            await self._gateway().ask(DisconnectTaskExecutor(self._resource_id, reason), _LEAVE_S)
        except EngineError as error:
            _log.warning("the ResourceManager was not told that this TaskManager leaves: %s", error)

    async def tell_free(self, index: int, allocation_id: AllocationId) -> None:
        """Tell the ResourceManager that a slot is free."""
        try:
            await self._gateway().ask(NotifySlotFree(self._resource_id, index, allocation_id))
        except EngineError as error:
            _log.warning("the ResourceManager was not told that slot %d is free: %s", index, error)

    def _gateway(self) -> Gateway:
        return self._rpc.connect(self._resource_manager, self._fence.epoch)
