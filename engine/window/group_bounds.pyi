from typing import Protocol, Self, final

from engine.window.row_block import Positions, RowBlock

OPEN_END: int

class Blocks(Protocol):
    """Rows that are there so far."""

    @property
    def stop(self) -> int: ...
    @property
    def has_ended(self) -> bool: ...
    def block_at(self, row: int) -> RowBlock: ...

@final
class GroupStart:
    """The begin of each row's group."""

    def __new__(cls, threshold: int) -> Self: ...
    def of(self, block: RowBlock) -> Positions: ...

@final
class GroupNumber:
    """The number of each row's group in its partition, from 1."""

    def __new__(cls, outer: int, threshold: int) -> Self: ...
    def of(self, block: RowBlock) -> Positions: ...

@final
class GroupEnd:
    """The end of each row's group."""

    def __new__(cls, threshold: int) -> Self: ...
    def of(self, block: RowBlock, queue: Blocks, known_only: bool = True) -> Positions | None: ...
