"""ProcessServer: the HTTP server of a process and the message service on it; the secret they need.

server = ProcessServer(...) ─► server.http.add_routes(...) ─► await start() ─► address ... await stop()

Held by: tests/entrypoint/test_every_route.py
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Sequence
from functools import partial

from engine.clock import Clock
from engine.closing import close_all_async
from engine.config.debug_options import CHECK_GATEWAYS
from engine.config.loader import Configuration
from engine.config.operating_options import WEBHOOK_KEY_FILE, WEBHOOK_URL
from engine.config.options import SSL_ENABLED, WEB_CANCEL
from engine.errors import ConfigurationError
from engine.gateways.messages import MESSAGE_TYPES
from engine.network_address import bind_socket, is_loopback, is_name, is_wildcard, local_host_towards
from engine.rpc.codec import MessageCodec
from engine.rpc.credentials import Credentials, secret_file
from engine.rpc.health import Health
from engine.rpc.http_forwarding import HttpForwarder
from engine.rpc.http_server import HttpServer
from engine.rpc.http_service import HttpRpcService
from engine.rpc.program import Program
from engine.rpc.read_access import ReadAccess, token_file
from engine.rpc.secret_file import load_or_create_secret, place_beside_configuration
from engine.rpc.tls import check_own, tls_contexts
from engine.rpc.user_tokens import UserTokens, users_file
from engine.rpc.webhook import Webhook

_log = logging.getLogger(__name__)


def load_credentials(configuration: Configuration, bind_host: str = "localhost") -> Credentials:
    """Return the cluster's secret; the first process of a cluster makes its file, unless others may reach it.

    Beyond this machine the others have to know it, and access must be configured before the first connection.
    Mutual TLS decides it, too.
    """
    path = secret_file(configuration)
    if path is None:
        raise ConfigurationError("there is no conf folder, where the cluster's secret lies: set DREY_CONF_DIR")
    if not path.exists() and not is_loopback(bind_host) and not configuration.get(SSL_ENABLED):
        raise ConfigurationError(
            f"no process listens on {bind_host}, beyond this machine, without the cluster's secret: make it once, "
            f"(umask 077; openssl rand -hex 32 > {path}), copy it to all machines of the cluster, and start again; or "
            "set security.ssl.enabled"
        )
    return Credentials.load_or_create(path)


def advertised_host(key: str, host: str | None, bind_host: str, towards: tuple[str, int] = ("", 0)) -> str:
    """Return the host that other processes are told; the one that listens where none is set.

    A process that listens on all interfaces is told under the address from which its packets leave.

    Args:
        key: the option that sets it, for errors.
        host: what it is set to.
        bind_host: where the process listens.
        towards: host and port of a process that it must reach, on a machine with several interfaces.

    Raises:
        ConfigurationError: no other process could reach it under that host.
    """
    if host is None:
        if not is_wildcard(bind_host):
            return bind_host
        found = local_host_towards(*towards)
        if found is None:
            found = socket.gethostname()
            _log.warning("there is no way to %s yet, so others are told %s: set %s", towards[0] or "others", found, key)
        return found
    if is_wildcard(host):
        raise ConfigurationError(
            f"{key}: {host} means all interfaces, which is where a process listens; set {key} to the name or address "
            "of this machine that others reach"
        )
    if is_loopback(host) and not is_loopback(bind_host):
        text = f"{key} is {host}, under which only processes of this machine find one that listens on {bind_host}"
        if not is_wildcard(bind_host) and not is_name(bind_host):  # a name may be one of this machine's own
            raise ConfigurationError(f"{text}, and none can reach it there: set {key} to {bind_host}, or to its name")
        _log.warning("%s: for processes of other machines, set %s to a name or an address of this one", text, key)
    return host


def free_port(host: str, ports: Sequence[int]) -> int:
    """Return the first port that can be listened at (0: any), for servers that take one only."""
    for port in ports:
        with contextlib.suppress(OSError), bind_socket(host, port):
            return port
    raise ConfigurationError(f"none of {len(ports)} ports from {ports[0]} on is free at {host}")


def load_readers(configuration: Configuration, bind_host: str) -> ReadAccess | None:
    """Return the read token of a server that others than this machine reach; the first process makes its file."""
    path = token_file(configuration)
    if is_loopback(bind_host) or path is None:
        return None
    readers = ReadAccess.load_or_create(path)
    _log.info("people who have the token in %s may read whatever this process answers to GET", path)
    return readers


def known_readers(configuration: Configuration, bind_host: str) -> ReadAccess | None:
    """Return the read token where its file is on this machine: a TaskManager's metrics take it, and it makes none."""
    path = token_file(configuration)
    return load_readers(configuration, bind_host) if path is not None and path.exists() else None


def load_webhook(configuration: Configuration, clock: Clock) -> Webhook | None:
    """Return the webhook that hears of the ends of jobs; the first process makes the file of its key."""
    url = configuration.get(WEBHOOK_URL)
    path = place_beside_configuration(configuration.get(WEBHOOK_KEY_FILE) or "webhook.key")
    if not url:
        return None
    if path is None:
        raise ConfigurationError("there is no conf folder, where the webhook's key lies: set DREY_CONF_DIR")
    return Webhook(url, load_or_create_secret(path, "webhook key"), clock)


class ProcessServer:
    """One server, one message service, and perhaps a second port with the same routes.

    Args:
        program: what the process says of itself.
        bind_host: where it listens.
        hosts: names under which others may ask it; they are told the first.
    """

    def __init__(
        self,
        program: Program,
        configuration: Configuration,
        credentials: Credentials,
        bind_host: str,
        ports: Sequence[int],
        hosts: Sequence[str],
        further_ports: Sequence[int] | None = None,
        readers: ReadAccess | None = None,
    ) -> None:
        #: contexts of mutual TLS, when it is enabled
        self.tls = tls_contexts(configuration)
        check_own(configuration, self.tls, hosts[0])
        server_tls, client_tls = self.tls or (None, None)
        serve = partial(
            HttpServer,
            bind_host,
            credentials=credentials,
            tls=server_tls,
            hosts=hosts,
            readers=readers,
            readers_cancel=configuration.get(WEB_CANCEL),
        )
        self.http = serve(ports)
        self._further = serve(further_ports) if further_ports else None
        users_path = users_file(configuration)
        users = UserTokens(users_path) if users_path is not None else None
        for server in (self.http, self._further):
            if server is not None:
                server.program = program
                server.users = users
        self.health = Health()
        self.http.add_routes(self.health.routes)
        #: forwarder of requests to the same routes of another process
        self.forwarder = HttpForwarder(client_tls)
        self.rpc = HttpRpcService(
            self.http, MessageCodec(MESSAGE_TYPES), credentials, client_tls, configuration.get(CHECK_GATEWAYS)
        )

    @property
    def address(self) -> str:
        """``host:port`` under which others reach this process."""
        return self.http.address

    @property
    def url(self) -> str:
        """The same, for a browser."""
        return f"{'http' if self.tls is None else 'https'}://{self.http.address}"

    async def start(self) -> None:
        """Listen; all routes have been added."""
        if self._further is not None:
            self._further.add_routes(self.http.routes)
        await self.http.start()
        if self._further is not None:
            await self._further.start()

    async def stop(self) -> None:
        """Close all connections; every step runs, the first error is raised."""
        further = () if self._further is None else (self._further.stop,)
        await close_all_async([*further, self.http.stop, self.forwarder.close, self.rpc.close])
