from typing import final

from typing_extensions import Buffer

from engine.iomanager.open_files import OpenFile
from engine.iomanager.spill_directory import SpillDirectory
from engine.iomanager.spill_file import SpillFile

@final
class SpillWriter:
    """Rows in, blocks on disk; from SpillSpace.writer."""

    label: str
    raw_bytes: int
    blocks_cut: int
    block_size: int
    def __new__(
        cls,
        space: object,
        label: str,
        buffers: object,
        identity: object,
        file_number: int,
        block_size: int,
        compress: bool,
    ) -> SpillWriter: ...
    def write_bytes(self, data: Buffer) -> None: ...
    def cut_block(self) -> int: ...
    def mark_block(self) -> int: ...
    @property
    def stored_bytes(self) -> int: ...
    @property
    def extents(self) -> tuple[tuple[OpenFile, SpillDirectory], ...]: ...
    def finish(self) -> SpillFile: ...
    def cancel(self) -> None: ...
    def discard(self) -> None: ...
