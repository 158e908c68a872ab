from collections.abc import Iterator
from types import TracebackType
from typing import Self, final

from engine.iomanager.io_buffers import IoBuffers
from engine.iomanager.request_queue import RequestQueue
from engine.iomanager.spill_file import SpillFile

@final
class SpillReader:
    """The blocks of a SpillFile, in order, read ahead."""

    next_index: int
    end_index: int
    def __new__(
        cls,
        space: object,
        file: SpillFile,
        queue: RequestQueue | None,
        buffers: IoBuffers,
        prefetch: int,
        place: tuple[int, int, int],
        end_block: int,
    ) -> Self: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __next__(self) -> bytes: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
