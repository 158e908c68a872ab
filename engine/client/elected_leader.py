"""The leader that ZooKeeper has elected: how its quorum is asked, and what a client hears of it.

Loaded only where ``high-availability.type`` is ZOOKEEPER: commands of other clusters do not wait for its client.

Held by: tests/client/test_zookeeper_settings.py
"""

from __future__ import annotations

import threading
from pathlib import Path

from engine.config.loader import Configuration, config_directory
from engine.config.options import (
    HA_ACL,
    HA_CLUSTER_ID,
    HA_CONNECTION_TIMEOUT,
    HA_QUORUM,
    HA_ROOT,
    HA_SESSION_TIMEOUT,
    HA_TLS_CA,
    HA_TLS_CERTIFICATE,
    HA_TLS_KEY,
)
from engine.errors import ConfigurationError, ResourceError
from engine.rpc.credentials import Credentials
from ha.information import LeaderInformation
from ha.interfaces import LeaderRetrieval
from ha.services import create_ha_services
from ha.zookeeper_hosts import parse_hosts
from ha.zookeeper_preflight import tls_context
from ha.zookeeper_settings import ZooKeeperSettings


def zookeeper_settings(
    configuration: Configuration, credentials: Credentials, guardian_pipe: int | None = None
) -> ZooKeeperSettings:
    """Return the settings of ZooKeeper. ``guardian_pipe``: to the process that closes the session if this one dies."""
    settings = ZooKeeperSettings(
        hosts=configuration.get(HA_QUORUM),
        secret=credentials.key(b"high-availability"),
        root=configuration.get(HA_ROOT),
        cluster_id=configuration.get(HA_CLUSTER_ID),
        session_timeout_s=configuration.get(HA_SESSION_TIMEOUT) / 1000,
        connection_timeout_s=configuration.get(HA_CONNECTION_TIMEOUT) / 1000,
        is_private=configuration.get(HA_ACL) == "creator",
        guardian_pipe=guardian_pipe,
        **_tls_files(configuration),
    )
    try:
        parse_hosts(settings.hosts)
        if settings.tls_ca:
            tls_context(settings)
    except ValueError as error:
        raise ConfigurationError(f"high-availability.zookeeper: {error}") from error
    return settings


def _tls_files(configuration: Configuration) -> dict[str, str]:
    """Return the files of the options; relative ones lie beside config.yaml."""
    folder = config_directory() or Path()
    options = {"tls_ca": HA_TLS_CA, "tls_certificate": HA_TLS_CERTIFICATE, "tls_key": HA_TLS_KEY}
    files = {name: folder / value for name, option in options.items() if (value := configuration.get(option))}
    if files and "tls_ca" not in files:
        raise ConfigurationError(f"{HA_TLS_CA.key} is not set: a certificate alone makes no TLS to ZooKeeper")
    if ("tls_certificate" in files) is not ("tls_key" in files):
        raise ConfigurationError(f"{HA_TLS_CERTIFICATE.key} and {HA_TLS_KEY.key} are set both or not at all")
    key = files.get("tls_key")
    if key is not None and key.is_file() and key.stat().st_mode & 0o077:
        raise ConfigurationError(f"others may read the private key {key}: run chmod 600 {key}")
    return {name: str(file) for name, file in files.items()}


class ElectedLeader:
    """A LeaderSource: what a watch on the quorum tells. It is opened by the first question."""

    count = 1

    def __init__(self, configuration: Configuration, credentials: Credentials | None) -> None:
        if credentials is None:
            raise ConfigurationError(
                "the leader's record in ZooKeeper is sealed with the cluster secret, which this user does not have: "
                "set security.secret-file, or name a JobManager with -m host:port"
            )
        self._settings = zookeeper_settings(configuration, credentials)
        self._retrieval: LeaderRetrieval | None = None
        self._news = threading.Condition()
        # guarded by: self._news
        self._has_answered = False
        self._leader: LeaderInformation | None = None

    def notify_leader(self, information: LeaderInformation | None) -> None:
        """Learn which JobManager leads; on the thread of the leader services."""
        with self._news:
            self._has_answered, self._leader = True, information
            self._news.notify_all()

    def address(self) -> str | None:
        """Return ``host:port`` of the leader; None while there is none; ResourceError when ZooKeeper cannot tell."""
        if self._retrieval is None:
            self._retrieval = create_ha_services("ZOOKEEPER", zookeeper=self._settings).retrieval()
            self._retrieval.start(self)
        with self._news:
            if not self._news.wait_for(lambda: self._has_answered, self._settings.connection_timeout_s):
                raise ResourceError(
                    f"ZooKeeper at {self._settings.hosts} does not answer, or not to this cluster secret: "
                    "bin/start-zookeeper-quorum.sh starts one; -m host:port names a JobManager"
                )
            return None if self._leader is None else self._leader.address

    def failed(self, address: str) -> None:
        """Go on: only ZooKeeper knows better."""

    def wait(self, seconds: float) -> None:
        """Wait for a time, or until another process leads."""
        with self._news:
            before = self._leader
            self._news.wait_for(lambda: self._leader != before, seconds)

    def close(self) -> None:
        """End the watch."""
        retrieval, self._retrieval = self._retrieval, None
        if retrieval is not None:
            retrieval.close()
