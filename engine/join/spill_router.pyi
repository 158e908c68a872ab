from typing import Self, final

from engine.join.hash_join import HashJoin
from engine.records.row_router import RowRouter

@final
class SpillRouter(RowRouter):
    """Takes probe rows of spilled partitions (see spill_router.pyx)."""

    drops_all: bool
    def __new__(cls, join: HashJoin) -> Self: ...
