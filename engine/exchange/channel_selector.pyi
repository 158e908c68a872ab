from enum import StrEnum
from typing import Any, Self

import pyarrow as pa

class SubtaskStateMapper(StrEnum):
    ARBITRARY = "ARBITRARY"
    FIRST = "FIRST"
    FULL = "FULL"
    RANGE = "RANGE"
    ROUND_ROBIN = "ROUND_ROBIN"
    UNSUPPORTED = "UNSUPPORTED"

class ChannelSelector:
    name: str
    is_pointwise: bool
    is_broadcast: bool
    @property
    def replicates(self) -> bool: ...
    upstream_mapper: SubtaskStateMapper
    downstream_mapper: SubtaskStateMapper
    channel_count: int
    def __new__(cls, channel_count: int, *arguments: Any, **options: Any) -> Self: ...
    def channels_of(self, batch: pa.RecordBatch) -> list[int]: ...
    def travelling(self, batch: pa.RecordBatch) -> pa.RecordBatch: ...
    def copy(self) -> Self: ...

class GlobalSelector(ChannelSelector): ...
class ForwardSelector(ChannelSelector): ...
class BroadcastSelector(ChannelSelector): ...
class RescaleSelector(ChannelSelector): ...

class ShuffleSelector(ChannelSelector):
    def __init__(self, channel_count: int, seed: int | None = None) -> None: ...

class RebalanceSelector(ChannelSelector):
    def __init__(self, channel_count: int, seed: int | None = None) -> None: ...
