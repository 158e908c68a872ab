from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Self

import pyarrow as pa

from engine.graph.ship_strategy import PartitionerSpec

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
    upstream_mapper: SubtaskStateMapper
    downstream_mapper: SubtaskStateMapper
    channel_count: int
    def __new__(cls, channel_count: int, *arguments: Any, **options: Any) -> Self: ...
    def channels_of(self, batch: pa.RecordBatch) -> list[int]: ...
    def copy(self) -> Self: ...

class GlobalSelector(ChannelSelector): ...
class ForwardSelector(ChannelSelector): ...
class BroadcastSelector(ChannelSelector): ...
class RescaleSelector(ChannelSelector): ...

class ShuffleSelector(ChannelSelector):
    def __init__(self, channel_count: int, seed: int | None = None) -> None: ...

class RebalanceSelector(ChannelSelector):
    def __init__(self, channel_count: int, seed: int | None = None) -> None: ...

class KeySelector(ChannelSelector):
    keys: tuple[str, ...]

class HashSelector(KeySelector):
    spread_nulls: bool
    def __init__(
        self, channel_count: int, schema: pa.Schema, keys: Sequence[str], spread_nulls: bool = False
    ) -> None: ...

class KeyGroupSelector(KeySelector):
    max_parallelism: int
    def __init__(
        self, channel_count: int, schema: pa.Schema, keys: Sequence[str], max_parallelism: int = 128
    ) -> None: ...
    def configure(self, max_parallelism: int) -> None: ...

class CustomSelector(KeySelector):
    function: Callable[[Any, int], int]
    def __init__(
        self, channel_count: int, schema: pa.Schema, keys: Sequence[str], function: Callable[[Any, int], int]
    ) -> None: ...

class RangeSelector(KeySelector):
    bounds: pa.RecordBatch
    descending: bool
    def __init__(
        self,
        channel_count: int,
        schema: pa.Schema,
        keys: Sequence[str],
        bounds: pa.RecordBatch,
        descending: bool = False,
    ) -> None: ...

def selector_for(
    spec: PartitionerSpec,
    schema: pa.Schema,
    channel_count: int,
    subtask_index: int = 0,
    function: Callable[[Any, int], int] | None = None,
    bounds: pa.RecordBatch | None = None,
    seed: int | None = None,
) -> ChannelSelector: ...
