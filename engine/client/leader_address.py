"""Where the leading JobManager is, for a client: ``-m``, or the configuration.

    -m host:port            wins
    ZooKeeper               else, with high-availability.type ZOOKEEPER
    rest.address:rest.port  else; rest.address is jobmanager.rpc.address where nobody set it, of a range of ports each
                            is tried

The cluster secret is read from ``security.secret-file`` where this user may read it; without it only what is open on
loopback can be asked.
"""

from __future__ import annotations

import socket

from engine.client.cluster_client import ClusterClient
from engine.config.command_line import current_command_line
from engine.config.loader import Configuration
from engine.config.options import HA_TYPE, JOB_MANAGER_ADDRESS, REST_ADDRESS, REST_PORT
from engine.rpc.credentials import Credentials, secret_file
from engine.rpc.tls import tls_contexts

#: seconds for which a client goes on asking when the JobManager it talked to is gone
PATIENCE_S = 10.0
#: how a JobManager begins to say that it is not the one to ask
NOT_LEADING = "this JobManager does not lead"
_PROBE_S = 1.0


def cluster_client(configuration: Configuration) -> ClusterClient:
    """Return a client of the leading JobManager; nothing is asked yet."""
    tls = tls_contexts(configuration)
    return ClusterClient(
        leader_address(configuration), _credentials(configuration), tls.client if tls is not None else None, PATIENCE_S
    )


def _credentials(configuration: Configuration) -> Credentials | None:
    path = secret_file(configuration)
    return Credentials.load(path) if path is not None and path.exists() else None


def leader_address(configuration: Configuration) -> str:
    """Return ``host:port`` of the JobManager to talk to."""
    master = current_command_line().master
    if master:
        return master
    if configuration.get(HA_TYPE) == "ZOOKEEPER":
        # Its client takes longer to load than most commands to run.
        from engine.client.elected_leader import elected_leader_address  # noqa: PLC0415

        return elected_leader_address(configuration, _credentials(configuration))
    host = configuration.get(REST_ADDRESS) or configuration.get(JOB_MANAGER_ADDRESS)
    ports = list(configuration.get(REST_PORT))
    for port in ports if len(ports) > 1 else ():
        if _listens(host, port):
            return f"{host}:{port}"
    return f"{host}:{ports[0]}"


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), _PROBE_S):
            return True
    except OSError:
        return False
