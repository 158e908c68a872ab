from collections.abc import Iterable, Iterator
from typing import Protocol, Self, final

import pyarrow as pa
from typing_extensions import Buffer

from engine.iomanager.spill_space import SpillSpace
from engine.join.join_phase import JoinPhase
from engine.join.join_spec import JoinSpec
from engine.memory.page_pool import PagePool
from engine.memory.value_stores import ValueOwner

class Page(Protocol):
    """A page of rows."""

    @property
    def segment(self) -> Buffer: ...
    @property
    def size(self) -> int: ...

@final
class HashJoin:
    """One subtask's hybrid hash join (see hash_join.pyx)."""

    spec: JoinSpec
    pool: PagePool
    build_rows: int
    probe_rows: int
    partitions_spilled: int
    repartition_count: int
    block_wise_count: int
    block_pass_count: int
    level_max: int
    reversed_count: int
    def __new__(
        cls, spec: JoinSpec, pool: PagePool, space: SpillSpace, value_owner: ValueOwner | None = None
    ) -> Self: ...
    @property
    def phase(self) -> JoinPhase: ...
    @property
    def probe_rows_spilled(self) -> int: ...
    @property
    def probe_rows_filtered(self) -> int: ...
    @property
    def table_kind(self) -> str: ...
    @property
    def distinct_rows(self) -> int: ...
    @property
    def spilled_bytes(self) -> int: ...
    def add_build_batch(self, batch: pa.RecordBatch) -> None: ...
    def add_build_pages(self, pages: Iterable[Page]) -> None: ...
    def add_build_rows(self, buffer: Buffer) -> None: ...
    def finish_build(self) -> None: ...
    def probe(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]: ...
    def finish_probe(self) -> Iterator[pa.RecordBatch]: ...
    def close(self) -> None: ...
