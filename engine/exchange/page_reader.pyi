from collections.abc import Iterable, Iterator

import pyarrow as pa
from _typeshed import ReadableBuffer

from engine.exchange.buffer_pool import Buffer
from engine.exchange.input_gate import InputGate
from engine.records.row_router import RowRouter

class PageReader:
    schema: pa.Schema
    max_rows: int
    max_bytes: int
    staged_rows: int
    staged_bytes: int
    def __new__(
        cls,
        schema: pa.Schema,
        max_rows: int = 32768,
        max_bytes: int = 1048576,
        router: RowRouter | None = None,
    ) -> PageReader: ...
    def has_room_for(self, size: int) -> bool: ...
    def add(self, *pages: Buffer) -> None: ...
    def add_row(self, row: ReadableBuffer) -> None: ...
    def decode_row(self, row: ReadableBuffer) -> pa.RecordBatch | None: ...
    def take_batches(self) -> Iterable[pa.RecordBatch]: ...

def gate_batches(
    gate: InputGate,
    schema: pa.Schema,
    max_rows: int = 32768,
    max_bytes: int = 1048576,
    router: RowRouter | None = None,
) -> Iterator[pa.RecordBatch]: ...
