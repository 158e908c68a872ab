"""DataPlane: how result partitions are read between the TaskManagers of a cluster, both sides of it.

    plane = DataPlane(manager, DataPlaneSettings(...)) ─► start() ─► address ─► close()

Both ends of a channel:

    this process                                               another one
    InputGate ─ RemoteInputChannel ─ ConnectionManager ══════► DataServer ─ ServerConnection ─ subpartition views

Held by: tests/transport/test_remote_channels.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.closing import close_all
from engine.transport.connection_manager import ConnectionManager
from engine.transport.data_server import DataPlaneSettings, DataServer
from engine.transport.remote_input_channel import RemoteReads

if TYPE_CHECKING:
    from engine.exchange.buffer_pool import NetworkBufferPool
    from engine.exchange.partition_manager import ResultPartitionManager
    from engine.graph.deployment import KeyRange


__all__ = ["DataPlane", "DataPlaneSettings"]


class DataPlane:
    """Server and connections of one process."""

    def __init__(self, manager: ResultPartitionManager, settings: DataPlaneSettings) -> None:
        self.server = DataServer(manager, settings)
        client_tls = None if settings.tls is None else settings.tls.client
        self.connections = ConnectionManager(settings.greeting, client_tls)

    def start(self) -> None:
        """Listen from now on."""
        self.server.start()

    @property
    def address(self) -> str:
        """The address for readers: ``data_address`` of the slots of this process."""
        return str(self.server.address)

    def reads(self, network_pool: NetworkBufferPool, channel_count: int, key_range: KeyRange | None) -> RemoteReads:
        """Return the resources of a gate with that many channels."""
        return RemoteReads(self.connections, network_pool, channel_count, key_range)

    def close(self) -> None:
        """End all connections. Idempotent."""
        close_all([self.connections.close, self.server.close])
