"""ResourceManager: the endpoint over the SlotManager.

    (1) TaskExecutor ── register ──► here        (2) JobMaster ── request slots ──► here
    (3) here ── request slot ──► TaskExecutor    (4) TaskExecutor ── offer ──► JobMaster ── (5) free ──► TaskExecutor
    (6) TaskExecutor ── slot free ──► here: the next request is served

TaskExecutors that stop answering heartbeats are forgotten, and the JobMasters with slots there are told.

Source: Flink's ResourceManager, for standalone clusters: it starts no TaskExecutors of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from engine.clock import Clock
from engine.errors import EngineError
from engine.gateways.messages import (
    Heartbeat,
    NotifySlotFree,
    RegisterTaskExecutor,
    RegistrationReply,
    RequestSlot,
    RequestSlotOverview,
    RequestSlots,
    SlotOverview,
    TaskExecutorLost,
    WithdrawSlotRequests,
)
from engine.gateways.resource_manager import ResourceManagerGateway
from engine.ids import JobId, ResourceId
from engine.resourcemanager.slot_manager import SlotAssignment, SlotManager
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.errors import EndpointUnreachableError, RpcTimeoutError
from engine.rpc.fencing import LeaderFence
from engine.rpc.gateway import RpcService
from engine.rpc.heartbeat import HeartbeatMonitor
from engine.rpc.request import ACKNOWLEDGE, Acknowledge

_log = logging.getLogger(__name__)

RESOURCE_MANAGER_ADDRESS = "resourcemanager"


class ResourceManager(RpcEndpoint):
    """Slots of the cluster, under one leader epoch."""

    protocol = ResourceManagerGateway

    def __init__(
        self,
        rpc: RpcService,
        epoch: int,
        heartbeat_interval_s: float,
        heartbeat_timeout_s: float,
        clock: Clock,
        on_fatal: Callable[[BaseException], None] | None = None,
    ) -> None:
        super().__init__(RESOURCE_MANAGER_ADDRESS, LeaderFence(epoch), on_fatal)
        self._rpc = rpc
        self._epoch = epoch
        self._slots = SlotManager()
        self._addresses: dict[ResourceId, str] = {}
        self._job_masters: dict[JobId, str] = {}
        self._heartbeats = HeartbeatMonitor[ResourceId](heartbeat_interval_s, heartbeat_timeout_s, clock)

    def start(self) -> None:
        """Begin to watch TaskExecutors."""
        self.spawn(self._send_heartbeats(), "heartbeats")

    async def register_task_executor(self, request: RegisterTaskExecutor) -> RegistrationReply:
        """Know a TaskExecutor and its slots."""
        if request.resource_id not in self._addresses:
            _log.info("TaskManager %s registers %d slots", request.resource_id, len(request.slots))
        self._addresses[request.resource_id] = request.address
        self._heartbeats.watch(request.resource_id)
        self._slots.register(request.resource_id, request.slots)
        self._assign()
        return RegistrationReply(request.resource_id)

    async def request_slots(self, request: RequestSlots) -> Acknowledge:
        """Queue a wish for slots."""
        self._job_masters[request.job_id] = request.job_master_address
        self._slots.request(request)
        self._assign()
        return ACKNOWLEDGE

    async def withdraw_slot_requests(self, request: WithdrawSlotRequests) -> Acknowledge:
        """Forget what a job still waits for."""
        self._slots.withdraw(request.job_id, request.request_id)
        if request.request_id is None:
            self._job_masters.pop(request.job_id, None)
        self._assign()
        return ACKNOWLEDGE

    async def notify_slot_free(self, request: NotifySlotFree) -> Acknowledge:
        """Note that a slot was given back."""
        self._slots.free(request.resource_id, request.index, request.allocation_id)
        self._assign()
        return ACKNOWLEDGE

    async def request_slot_overview(self, request: RequestSlotOverview) -> SlotOverview:
        """Return who has the slots."""
        return self._slots.overview()

    def _assign(self) -> None:
        for assignment in self._slots.assign():
            self.spawn(self._request_slot(assignment), f"slot {assignment.index} of {assignment.resource_id}")

    async def _request_slot(self, assignment: SlotAssignment) -> None:
        request = assignment.request
        gateway = self._rpc.connect(self._addresses[assignment.resource_id], self._epoch)
        try:
            await gateway.ask(
                RequestSlot(
                    assignment.index,
                    request.job_id,
                    assignment.allocation_id,
                    request.job_master_address,
                    request.request_id,
                )
            )
        except EngineError as error:
            _log.warning("slot %d of %s was refused: %s", assignment.index, assignment.resource_id, error)
            self._slots.reject(assignment.allocation_id)
            self._assign()
        else:
            self._slots.confirm(assignment.allocation_id)

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeats.interval_s)
            for resource_id in self._heartbeats.poll():
                self._lose(resource_id)
            for resource_id in self._heartbeats.targets:
                self.spawn(self._heartbeat(resource_id), f"heartbeat to {resource_id}")

    async def _heartbeat(self, resource_id: ResourceId) -> None:
        gateway = self._rpc.connect(self._addresses[resource_id], self._epoch)
        try:
            await gateway.ask(Heartbeat(self.address))
        except (RpcTimeoutError, EndpointUnreachableError):
            return
        self._heartbeats.received(resource_id)

    def _lose(self, resource_id: ResourceId) -> None:
        _log.warning("TaskManager %s has not answered heartbeats and is given up", resource_id)
        self._addresses.pop(resource_id, None)
        for job_id in self._slots.unregister(resource_id):
            address = self._job_masters.get(job_id)
            if address is not None:
                self.spawn(self._tell_lost(address, resource_id), f"lost {resource_id}")
        self._assign()

    async def _tell_lost(self, job_master_address: str, resource_id: ResourceId) -> None:
        gateway = self._rpc.connect(job_master_address, self._epoch)
        try:
            await gateway.ask(TaskExecutorLost(resource_id, "it has not answered heartbeats"))
        except EngineError as error:
            _log.warning("%s was not told of the loss of %s: %s", job_master_address, resource_id, error)
