from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from engine.exchange.channel_selector import ChannelSelector

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
