from collections.abc import Sequence

import pyarrow as pa

from engine.exchange.channel_selector import ChannelSelector

class KeySelector(ChannelSelector):
    keys: tuple[str, ...]

class HashSelector(KeySelector):
    spread_nulls: bool
    spread: tuple[int, ...]
    replicated: tuple[int, ...]
    def __init__(
        self,
        channel_count: int,
        schema: pa.Schema,
        keys: Sequence[str],
        spread_nulls: bool = False,
        spread: Sequence[int] = (),
        replicated: Sequence[int] = (),
    ) -> None: ...
    @property
    def replicates(self) -> bool: ...
    def home_of(self, key_hash: int) -> int: ...
    def hashes_of(self, batch: pa.RecordBatch) -> list[int]: ...
    def divide(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch | None, pa.RecordBatch | None]: ...

class KeyGroupSelector(KeySelector):
    max_parallelism: int
    def __init__(
        self, channel_count: int, schema: pa.Schema, keys: Sequence[str], max_parallelism: int = 128
    ) -> None: ...
    def configure(self, max_parallelism: int) -> None: ...

class CustomSelector(ChannelSelector):
    column: str
    def __init__(self, channel_count: int, column: str) -> None: ...
