"""The address of the leading JobManager, for a client: ``-m``, or the configuration.

    -m host:port,...        wins; each is tried
    ZooKeeper               else, with high-availability.type ZOOKEEPER
    rest.address:rest.port  else; rest.address is jobmanager.rpc.address where it is not set; each port of a range is
                            tried

A user's token is read from ``security.token-file``, where that is set.

Else the cluster secret is read from ``security.secret-file`` where this user may read it; without it only what is open
on loopback can be asked.

Held by: tests/client/test_following_the_leader.py
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from engine.client.cluster_client import ClusterClient
from engine.client.leader_source import FixedAddresses, LeaderSource
from engine.config.command_line import current_command_line
from engine.config.loader import Configuration
from engine.config.network_options import JOB_MANAGER_ADDRESS, REST_ADDRESS, REST_PORT
from engine.config.options import CLIENT_TIMEOUT, HA_CONNECTION_TIMEOUT, HA_STORAGE_FOLDER, HA_TYPE
from engine.gateways.protocol import this_program
from engine.network_address import address_text
from engine.rpc.credentials import Credentials, secret_file
from engine.rpc.tls import check_own, tls_contexts
from engine.rpc.user_tokens import own_token

#: seconds for which a client keeps asking a JobManager whose jobs end with it
_PATIENCE_S = 10.0
_PROBE_S = 1.0


def cluster_client(
    configuration: Configuration, on_waiting: Callable[[str], None] = lambda reason: None
) -> ClusterClient:
    """Return a client of the leading JobManager; nothing is asked yet. ``on_waiting`` hears that it waits for one."""
    tls = tls_contexts(configuration)
    check_own(configuration, tls)
    credentials = _credentials(configuration)
    is_elected = configuration.get(HA_TYPE) == "ZOOKEEPER"
    return ClusterClient(
        _leader_source(configuration, credentials),
        credentials,
        tls.client if tls is not None else None,
        configuration.get(CLIENT_TIMEOUT) / 1000 if is_elected or configuration.get(HA_STORAGE_FOLDER) else _PATIENCE_S,
        configuration.get(HA_CONNECTION_TIMEOUT) / 1000 if is_elected and not current_command_line().master else 0.0,
        on_waiting,
        this_program("client"),
        own_token(configuration),
    )


def _leader_source(configuration: Configuration, credentials: Credentials | None) -> LeaderSource:
    master = current_command_line().master
    if master:
        return FixedAddresses(master)
    if configuration.get(HA_TYPE) == "ZOOKEEPER":
        # Its client takes longer to load than most commands to run.
        from engine.client.elected_leader import ElectedLeader

        return ElectedLeader(configuration, credentials)
    return FixedAddresses(_configured_address(configuration))


def _credentials(configuration: Configuration) -> Credentials | None:
    path = secret_file(configuration)
    return Credentials.load(path) if path is not None and path.exists() else None


def _configured_address(configuration: Configuration) -> str:
    host = configuration.get(REST_ADDRESS) or configuration.get(JOB_MANAGER_ADDRESS)
    ports = list(configuration.get(REST_PORT))
    for port in ports if len(ports) > 1 else ():
        if _listens(host, port):
            return address_text(host, port)
    return address_text(host, ports[0])


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), _PROBE_S):
            return True
    except OSError:
        return False
