from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, Self, final

import pyarrow as pa
from typing_extensions import Buffer

from engine.graph.plan import JoinType
from engine.iomanager.spill_space import SpillSpace
from engine.join.pair_condition import PairCondition
from engine.join.replicated_keys import ReplicatedKeys
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

    pool: PagePool
    build_rows: int
    probe_rows: int
    partitions_spilled: int
    repartition_count: int
    block_wise_count: int
    block_pass_count: int
    level_max: int
    reversed_count: int
    probe_rows_spilled: int
    probe_rows_filtered: int
    def __new__(
        cls,
        how: JoinType,
        build_schema: pa.Schema,
        probe_schema: pa.Schema,
        build_keys: Sequence[int],
        probe_keys: Sequence[int],
        build_is_left: bool,
        output: Sequence[tuple[int, int]],
        output_schema: pa.Schema,
        pool: PagePool,
        space: SpillSpace,
        force_spill: bool = False,
        *,
        condition: PairCondition | None = None,
        null_aware: bool = False,
        replicated: ReplicatedKeys | None = None,
        value_owner: ValueOwner | None = None,
    ) -> Self: ...
    @property
    def has_dense_keys(self) -> bool: ...
    @property
    def alike_count(self) -> int: ...
    @property
    def spilled_bytes(self) -> int: ...
    def add_build_batch(self, batch: pa.RecordBatch) -> None: ...
    def add_build_pages(self, pages: Iterable[Page]) -> None: ...
    def add_build_rows(self, buffer: Buffer) -> None: ...
    def finish_build(self) -> None: ...
    def probe(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]: ...
    def finish_probe(self) -> Iterator[pa.RecordBatch]: ...
    def close(self) -> None: ...
