"""Two TaskManagers' exchanges in one process, over real sockets: partitions at the far side, gates at the near one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.exchange.input_gate import InputGate
from engine.graph.deployment import InputChannelDescriptor, KeyRange, PartitionLocation
from engine.ids import ResultPartitionId
from engine.transport.data_plane import DataPlane, DataPlaneSettings
from engine.transport.remote_input_channel import RemoteReads
from tests.exchange.world import World


class RemoteWorld:
    def __init__(
        self,
        folder: Path,
        with_unix: bool = True,
        segments: int = 64,
        segment_size: int = 4096,
        near_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        (folder / "near").mkdir()
        (folder / "far").mkdir()
        self.near = World(folder / "near", segments, segment_size)
        self.far = World(folder / "far", segments, segment_size)
        settings = DataPlaneSettings("test", bind_host=None if with_unix else "127.0.0.1", with_unix=with_unix)
        self.far_plane = DataPlane(self.far.manager, dataclasses.replace(settings, **options))
        self.near_plane = DataPlane(
            self.near.manager, dataclasses.replace(settings, **{**options, **(near_options or {})})
        )
        self.far_plane.start()
        self.run = self.near.run

    def reads(self, channel_count: int, key_range: KeyRange | None = None) -> RemoteReads:
        return self.near_plane.reads(self.near.network, channel_count, key_range)

    def channel(self, identity: ResultPartitionId, subpartition: int = 0) -> InputChannelDescriptor:
        return InputChannelDescriptor(identity, PartitionLocation.REMOTE, subpartition, self.far_plane.address)

    def gate(
        self,
        partitions: Sequence[ResultPartitionId],
        subpartition: int = 0,
        **options: Any,
    ) -> InputGate:
        channels = tuple(self.channel(identity, subpartition) for identity in partitions)
        return InputGate(channels, self.near.manager, reads=self.reads(len(channels)), **options)

    def join(self, timeout_s: float = 60) -> None:
        self.near.join(timeout_s)
        self.far.join(timeout_s)
        assert not self.near.failures, self.near.failures
        assert not self.far.failures, self.far.failures

    def close(self) -> None:
        self.near_plane.close()
        self.far_plane.close()
        assert self.near_plane.connections.connection_count == 0, "a channel was not released"
        self.near.close()
        self.far.close()
