from typing import final

from engine.iomanager.block_reader import BlockReader
from engine.iomanager.open_files import OpenFile
from engine.iomanager.spill_directory import SpillDirectory

@final
class SpillFile:
    """A finished file of blocks."""

    label: str
    raw_bytes: int
    stored_bytes: int
    block_count: int
    deleted: bool
    @property
    def paths(self) -> tuple[str, ...]: ...
    @property
    def extents(self) -> tuple[tuple[OpenFile, SpillDirectory], ...]: ...
    @property
    def file_number(self) -> int: ...
    def place(self, mark: int) -> tuple[int, int, int]: ...
    def reader(
        self, prefetch: int = 2, place: tuple[int, int, int] = (0, 0, 0), block_count: int | None = None
    ) -> BlockReader: ...
    def delete(self) -> None: ...
    def share(self, count: int) -> None: ...
    def release(self) -> None: ...
