"""ZooKeeperHaServices: all leader services of a process, over one connection that is open while one is in use.

Held by: tests/ha/test_zookeeper.py
"""

from __future__ import annotations

from ha.interfaces import LeaderElection, LeaderRetrieval, SessionHealth, StateHandleStore
from ha.zookeeper_election import ZooKeeperElection
from ha.zookeeper_retrieval import ZooKeeperRetrieval
from ha.zookeeper_session import ZooKeeperSession
from ha.zookeeper_settings import ZooKeeperSettings
from ha.zookeeper_state import ZooKeeperStateStore


class ZooKeeperHaServices:
    """The leader is elected by ZooKeeper."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self.session = ZooKeeperSession(settings)
        self._elections: list[ZooKeeperElection] = []
        self._store = ZooKeeperStateStore(self.session, self._latch_of)

    def election(self) -> LeaderElection:
        """Return an election for one contender."""
        election = ZooKeeperElection(self.session)
        self._elections.append(election)
        return election

    def retrieval(self) -> LeaderRetrieval:
        """Return a retrieval for one listener."""
        return ZooKeeperRetrieval(self.session)

    def state_store(self) -> StateHandleStore:
        """Return the contents that the leader keeps in ZooKeeper."""
        return self._store

    def session_health(self) -> SessionHealth:
        """Return the health of the session, which is not connected while no election or retrieval is in use."""
        return SessionHealth(self.session.is_connected, self.session.is_alive(), self.session.ended_count)

    def _latch_of(self, epoch: int) -> str:
        return next((path for election in self._elections if (path := election.latch_path(epoch))), "")
