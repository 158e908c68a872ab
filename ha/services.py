"""HaServices: the leader services of a process, by the value of ``high-availability.type``.

    create_ha_services("embedded")                                    MiniCluster
    create_ha_services("NONE", address="http://host:6123", epoch=n)   one standalone JobManager
    create_ha_services("ZOOKEEPER", zookeeper=ZooKeeperSettings(...)) several, of which ZooKeeper elects one

One latch elects all components of a process together, so there is one election and one retrieval.

Held by: tests/ha/test_zookeeper.py
Held by: tests/ha/test_embedded.py
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Protocol

from ha.embedded import EmbeddedLeaderService
from ha.information import LeaderInformation
from ha.interfaces import LeaderElection, LeaderRetrieval, SessionHealth, StateHandleStore
from ha.memory_state import MemoryStateStore
from ha.standalone import StandaloneElection, StandaloneRetrieval

if TYPE_CHECKING:
    from ha.zookeeper_settings import ZooKeeperSettings


class HaServices(Protocol):
    """Makes elections and retrievals, and has the contents that leaders keep."""

    def election(self) -> LeaderElection:
        """Return the election of this process's components."""
        ...

    def retrieval(self) -> LeaderRetrieval:
        """Return a watch on the leader."""
        ...

    def state_store(self) -> StateHandleStore:
        """Return the contents; only an epoch that an election of these services holds can change them."""
        ...

    def session_health(self) -> SessionHealth | None:
        """Return the health of the session at the quorum; None: no quorum is needed. Thread: any."""
        ...


class StandaloneHaServices:
    """A fixed leader at ``address``."""

    def __init__(self, address: str, epoch: int) -> None:
        self._information = LeaderInformation(epoch, uuid.uuid4(), address)
        self._election = StandaloneElection(epoch)
        self._store = MemoryStateStore(self._election.has_leadership)

    def election(self) -> LeaderElection:
        """Return an election whose only contender leads at once."""
        return self._election

    def retrieval(self) -> LeaderRetrieval:
        """Return a watch that tells the fixed address."""
        return StandaloneRetrieval(self._information)

    def state_store(self) -> StateHandleStore:
        """Return the contents, which end with this process."""
        return self._store

    def session_health(self) -> None:
        """Return None: there is no session."""


def create_ha_services(
    kind: str, address: str = "", epoch: int = 1, zookeeper: ZooKeeperSettings | None = None
) -> HaServices:
    """Return the services of that type; an unknown one raises ValueError naming those there are."""
    lowered = kind.lower()
    if lowered == "embedded":
        return EmbeddedLeaderService()
    if lowered in ("none", "standalone"):
        return StandaloneHaServices(address, epoch)
    if lowered == "zookeeper":
        if zookeeper is None:
            raise ValueError("high-availability.type ZOOKEEPER needs settings of its quorum")
        # Only a process that needs ZooKeeper waits for its client to load.
        from ha.zookeeper_services import ZooKeeperHaServices

        return ZooKeeperHaServices(zookeeper)
    raise ValueError(f"high-availability.type {kind!r} is not one of NONE, ZOOKEEPER, embedded")
