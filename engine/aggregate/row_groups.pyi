from engine.aggregate.row_partitions import KeptRows
from engine.aggregate.state_combiner import StateCombiner
from engine.iomanager.spill_file import SpillFile
from engine.memory.page_pool import PagePool
from engine.records.row_codec import RowCodec

def row_groups_of(
    codec: RowCodec, key_count: int, combiner: StateCombiner, pool: PagePool, group_limit: int
) -> RowGroups | None: ...

class RowGroups:
    group_count: int

    def merge_kept(self, kept: KeptRows, groups_expected: int) -> KeptRows | None: ...
    def merge_file(self, file: SpillFile, groups_expected: int) -> KeptRows | None: ...
    def rest(self) -> None: ...
    def close(self) -> None: ...
