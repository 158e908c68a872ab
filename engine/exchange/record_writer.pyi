from collections.abc import Iterable

import pyarrow as pa

from engine.exchange.channel_selector import ChannelSelector
from engine.exchange.result_partition import ResultPartition
from engine.memory.value_stores import ValueOwner

class RecordWriter:
    partition: ResultPartition
    schema: pa.Schema
    rows: int
    bytes: int
    timeout_ms: int
    is_broadcast: bool
    selector: ChannelSelector
    def __new__(
        cls, partition: ResultPartition, schema: pa.Schema, selector: ChannelSelector, timeout_ms: int = -1
    ) -> RecordWriter: ...
    def keep_outside(self, owner: ValueOwner, keys: Iterable[str] = ()) -> None: ...
    def emit(self, batch: pa.RecordBatch) -> None: ...
    def flush(self) -> None: ...
    def flush_if_older_than(self, age_ms: int) -> bool: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...
