"""LeaderEndpoint: tells processes that know only a JobManager's address which one leads, and under which epoch.

Without a quorum this is how a TaskManager finds the leader and its epoch: the JobManager at the configured address is
asked (``StandaloneLeaderFinder``). It answers calls of any epoch, since its callers know none yet. With a quorum
the TaskManager watches that itself (``ElectedLeaderFinder``).

Held by: tests/entrypoint/test_high_availability.py
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from engine.config.loader import Configuration
from engine.config.network_options import REST_PORT
from engine.config.options import HA_TYPE
from engine.entrypoint.places import Places, listed_masters
from engine.errors import EngineError, ResourceError
from engine.gateways.leader import LEADER_ADDRESS, LeaderGateway
from engine.gateways.messages import LeaderReply, RequestLeader
from engine.network_address import address_text
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.gateway import RpcService
from engine.taskexecutor.registration import Leader
from ha.information import LeaderInformation
from ha.interfaces import LeaderRetrieval

#: seconds until a JobManager that does not answer counts as absent
_ASK_S = 5.0


class _NoFence:
    """A fence that accepts every epoch."""

    def check(self, epoch: int) -> None:
        """Do nothing."""


def listed_job_managers(configuration: Configuration, places: Places) -> tuple[str, ...]:
    """Return ``host:port`` of the JobManagers in ``conf/masters`` as it is here; none without ZooKeeper."""
    if configuration.get(HA_TYPE) != "ZOOKEEPER":
        return ()
    port = configuration.get(REST_PORT)[0]
    return tuple(address_text(host, own or port) for host, own in listed_masters(places))


class LeaderEndpoint(RpcEndpoint):
    """The leader as this JobManager knows it."""

    protocol = LeaderGateway

    def __init__(self) -> None:
        super().__init__(LEADER_ADDRESS, _NoFence())
        self.leader: LeaderInformation | None = None

    async def request_leader(self, request: RequestLeader) -> LeaderReply:
        """Return the leader; ResourceError when there is none."""
        if self.leader is None:
            raise ResourceError("no JobManager leads at present")
        return LeaderReply(self.leader.epoch, str(self.leader.session), self.leader.address)


class StandaloneLeaderFinder:
    """Asks the JobManager at a fixed address; of a range of ports the first one that answers."""

    def __init__(self, rpc: RpcService, host: str, ports: Sequence[int]) -> None:
        self._rpc = rpc
        self._addresses = [address_text(host, port) for port in ports]

    async def find(self) -> Leader:
        """Return the leader; raises what the last attempt failed with."""
        failure: EngineError = ResourceError("no port of the JobManager is configured")
        for address in self._addresses:
            try:
                reply = await self._rpc.connect(f"{address}/{LEADER_ADDRESS}", 0).ask(RequestLeader(), _ASK_S)
            except EngineError as error:
                failure = error
            else:
                return Leader(f"{reply.address}/{RESOURCE_MANAGER_ADDRESS}", reply.epoch)
        raise failure


class ElectedLeaderFinder:
    """Finds the leader by a watch on the quorum. A LeaderRetrievalListener; ``find`` on the event loop."""

    def __init__(self, on_change: Callable[[], None], retrieval: LeaderRetrieval) -> None:
        self._retrieval = retrieval
        self._loop = asyncio.get_running_loop()
        self._on_change = on_change
        self._leader: LeaderInformation | None = None

    def notify_leader(self, information: LeaderInformation | None) -> None:
        """Handle a new leader, on any thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._hear, information)

    def _hear(self, information: LeaderInformation | None) -> None:
        self._leader = information
        # That none leads says nothing of the one that led: its record may be on its way.
        if information is not None:
            self._on_change()

    async def find(self) -> Leader:
        """Return the leader; ResourceError when none is known."""
        if self._leader is None:
            raise ResourceError(self._retrieval.trouble or "ZooKeeper knows no leading JobManager")
        return Leader(f"{self._leader.address}/{RESOURCE_MANAGER_ADDRESS}", self._leader.epoch)
