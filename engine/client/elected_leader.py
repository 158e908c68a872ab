"""The leader that ZooKeeper has elected: how its quorum is asked, and one question of a client.

Loaded only where ``high-availability.type`` is ZOOKEEPER: commands of other clusters do not wait for its client.
"""

from __future__ import annotations

import queue

from engine.config.loader import Configuration
from engine.config.options import (
    HA_ACL,
    HA_CLUSTER_ID,
    HA_CONNECTION_TIMEOUT,
    HA_QUORUM,
    HA_ROOT,
    HA_SESSION_TIMEOUT,
)
from engine.errors import ConfigurationError, ResourceError
from engine.rpc.credentials import Credentials
from ha.information import LeaderInformation
from ha.services import create_ha_services
from ha.zookeeper_settings import ZooKeeperSettings


def zookeeper_settings(configuration: Configuration, credentials: Credentials) -> ZooKeeperSettings:
    """Return what the options say."""
    return ZooKeeperSettings(
        hosts=configuration.get(HA_QUORUM),
        secret=credentials.key(b"high-availability"),
        root=configuration.get(HA_ROOT),
        cluster_id=configuration.get(HA_CLUSTER_ID),
        session_timeout_s=configuration.get(HA_SESSION_TIMEOUT) / 1000,
        connection_timeout_s=configuration.get(HA_CONNECTION_TIMEOUT) / 1000,
        is_private=configuration.get(HA_ACL) == "creator",
    )


class _Heard:
    """Keeps what is told."""

    def __init__(self) -> None:
        self.leaders: queue.SimpleQueue[LeaderInformation | None] = queue.SimpleQueue()

    def notify_leader(self, information: LeaderInformation | None) -> None:
        """Note a leader."""
        self.leaders.put(information)


def elected_leader_address(configuration: Configuration, credentials: Credentials | None) -> str:
    """Return ``host:port`` of the leader; waits for one, as long as for a connection."""
    if credentials is None:
        raise ConfigurationError(
            "the leader's record in ZooKeeper is sealed with the cluster secret, which this user does not have: set "
            "security.secret-file, or name a JobManager with -m host:port"
        )
    settings = zookeeper_settings(configuration, credentials)
    retrieval = create_ha_services("ZOOKEEPER", zookeeper=settings).retrieval()
    heard = _Heard()
    retrieval.start(heard)
    try:
        has_answered = False
        while True:
            leader = heard.leaders.get(timeout=settings.connection_timeout_s)
            if leader is not None:
                return leader.address
            has_answered = True
    except queue.Empty:
        who = f"ZooKeeper at {settings.hosts}"
        what = "knows no JobManager that leads" if has_answered else "does not answer, or not to this cluster secret"
        raise ResourceError(f"{who} {what}: bin/start-cluster.sh starts them; -m host:port names one") from None
    finally:
        retrieval.close()
