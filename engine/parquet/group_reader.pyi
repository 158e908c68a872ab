from typing import NamedTuple

import pyarrow as pa

from engine.parquet.fetched_bytes import FetchedBytes
from engine.records.row_mask import Mask
from engine.records.side_by_side import SideBySide

class StoredChunk(NamedTuple):
    position: int
    end: int
    values: int
    size_max: int
    codec: str
    shape: int
    stored_width: int
    width: int
    is_nullable: bool
    is_integer: bool = False

def known_codecs() -> frozenset[str]: ...

class GroupChunks:
    names: tuple[str, ...]
    def __new__(cls, chunks: dict[str, StoredChunk]) -> GroupChunks: ...
    @staticmethod
    def of_run(groups: list[tuple[GroupChunks, int]]) -> GroupChunks: ...

class GroupReader:
    rows_read: int
    def __new__(cls, schema: pa.Schema, window_bytes: int) -> GroupReader: ...
    def begin(self, source: int | FetchedBytes, chunks: GroupChunks) -> None: ...
    def skip(self, rows: int) -> None: ...
    def read(self, rows: int, mask: pa.BooleanArray | Mask | None = None) -> pa.RecordBatch: ...
    def read_beside(
        self,
        rows: int,
        mask: pa.BooleanArray | Mask | None,
        sides: SideBySide,
        batch: pa.RecordBatch,
        kept: pa.BooleanArray | Mask | None = None,
    ) -> pa.RecordBatch: ...
