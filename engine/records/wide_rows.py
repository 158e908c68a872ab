"""Very wide rows at the edges of a process: how wide they are, and what Arrow has freed of them goes back at once.

with turn(row_bytes): read, hand on     as ``memory.wide_turns``, with one allocator for all of Arrow
give_back()                             what Arrow has freed of a row goes back to the system
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Final

import pyarrow as pa

from engine.memory import wide_turns
from engine.memory.wide_turns import WIDE_BYTES

__all__ = ["WIDE_BYTES", "give_back", "turn", "width_of"]

#: Arrow's own choice, from which Parquet takes its buffers whatever pool is set later
_PARQUET_POOL: Final = pa.default_memory_pool()
#: so few rows may be as many bytes because of one of them
_FEW_ROWS: Final = 128
#: of narrow rows, which are most; it may be entered any number of times
_NO_TURN: Final = nullcontext()


def width_of(size_bytes: int, row_count: int) -> float:
    """Return how wide the rows of a batch are: on average, or the whole where one row may be most of it."""
    return size_bytes if row_count <= _FEW_ROWS else size_bytes / row_count


def turn(row_bytes: float, *, is_handed: bool = False) -> AbstractContextManager[None]:
    """Hold the turn of the process while rows of this width are handled."""
    if row_bytes < WIDE_BYTES:
        return _NO_TURN
    _share_one_pool()
    return wide_turns.turn(row_bytes, is_handed=is_handed)


def give_back() -> None:
    """Have Arrow give unused memory back to the system, after a wide row was read or written."""
    pa.default_memory_pool().release_unused()
    _PARQUET_POOL.release_unused()


def _share_one_pool() -> None:
    """Take all of Arrow's memory from one allocator from now on: what two have freed lies in memory twice.

    They differ where a script has loaded pyarrow before the engine could choose for Parquet as well.
    """
    if pa.default_memory_pool().backend_name != _PARQUET_POOL.backend_name:
        pa.set_memory_pool(_PARQUET_POOL)
