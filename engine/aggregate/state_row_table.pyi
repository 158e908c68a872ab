from engine.accumulators.state_combiner import StateCombiner
from engine.aggregate.merge_scratch import MergeScratch
from engine.iomanager.spill_file import SpillFile
from engine.memory.page_pool import PagePool
from engine.partitions.row_partitions import KeptRows
from engine.records.row_codec import RowCodec

def state_row_table_of(
    codec: RowCodec,
    key_count: int,
    combiner: StateCombiner,
    pool: PagePool,
    group_limit: int,
    scratch: MergeScratch | None = None,
) -> StateRowTable | None: ...

class StateRowTable:
    group_count: int
    @property
    def page_count(self) -> int: ...
    @property
    def row_size(self) -> int: ...
    def add_kept(self, kept: KeptRows, groups_expected: int) -> bool: ...
    def take(self) -> KeptRows: ...
    def merge_file(self, file: SpillFile, groups_expected: int) -> KeptRows | None: ...
    def rest(self) -> None: ...
    def close(self) -> None: ...
