"""ProcessServer: the HTTP server of a process and the message service on it; the secret they need.

server = ProcessServer(...) ─► server.http.add_routes(...) ─► await start() ─► address ... await stop()
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.config.loader import Configuration
from engine.config.options import CHECK_GATEWAYS, SECRET_FILE
from engine.entrypoint.places import Places
from engine.gateways.messages import MESSAGE_TYPES
from engine.rpc.codec import MessageCodec
from engine.rpc.credentials import Credentials
from engine.rpc.http_server import HttpServer
from engine.rpc.http_service import HttpRpcService


def load_credentials(configuration: Configuration, places: Places) -> Credentials:
    """Return the cluster's secret; the first process of a cluster makes its file."""
    chosen = configuration.get(SECRET_FILE)
    return Credentials.load_or_create(Path(chosen) if chosen else places.conf / "cluster.secret")


class ProcessServer:
    """One server, one message service, and perhaps a second port with the same routes."""

    def __init__(
        self,
        configuration: Configuration,
        credentials: Credentials,
        bind_host: str,
        ports: Sequence[int],
        host: str,
        further_ports: Sequence[int] | None = None,
    ) -> None:
        self.http = HttpServer(bind_host, ports, credentials, host=host)
        self._further = HttpServer(bind_host, further_ports, credentials, host=host) if further_ports else None
        self.rpc = HttpRpcService(
            self.http, MessageCodec(MESSAGE_TYPES), credentials, checks_local=configuration.get(CHECK_GATEWAYS)
        )

    @property
    def address(self) -> str:
        """``host:port`` under which others reach this process."""
        return self.http.address

    @property
    def url(self) -> str:
        """The same, for a browser."""
        return f"http://{self.http.address}"

    async def start(self) -> None:
        """Listen; all routes have been added."""
        if self._further is not None:
            self._further.add_routes(self.http.routes)
        await self.http.start()
        if self._further is not None:
            await self._further.start()

    async def stop(self) -> None:
        """Close all connections."""
        if self._further is not None:
            await self._further.stop()
        await self.http.stop()
        await self.rpc.close()
