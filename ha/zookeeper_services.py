"""ZooKeeperHaServices: elections and retrievals of a process, over one connection that is open while one is in use."""

from __future__ import annotations

from ha.interfaces import LeaderElection, LeaderRetrieval
from ha.zookeeper_election import ZooKeeperElection
from ha.zookeeper_retrieval import ZooKeeperRetrieval
from ha.zookeeper_session import ZooKeeperSession
from ha.zookeeper_settings import ZooKeeperSettings


class ZooKeeperHaServices:
    """The leader is elected by ZooKeeper."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self.session = ZooKeeperSession(settings)

    def election(self) -> LeaderElection:
        """Return an election for one contender."""
        return ZooKeeperElection(self.session)

    def retrieval(self) -> LeaderRetrieval:
        """Return a retrieval for one listener."""
        return ZooKeeperRetrieval(self.session)
