from typing import Self, final

from engine.join.hash_join import HashJoin
from engine.records.row_sieve import RowSieve

@final
class SpillSieve(RowSieve):
    """Takes probe rows of spilled partitions (see spill_sieve.pyx)."""

    drops_all: bool
    def __new__(cls, join: HashJoin) -> Self: ...
