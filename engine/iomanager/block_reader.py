"""BlockReader: the contract of a spill file's readers, which ``SpillReader`` fulfils.

    with file.reader() as reader:
        for block in reader: ...

A file knows only that it can be read, through its space. How it is read is up to the reader, which knows files. So the
reader's module imports the file's and not the other way round.

Held by: tests/iomanager/test_spill_round_trip.py
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self


class BlockReader(Protocol):
    """The blocks of a file, in order. Closed by its owner, or as a context."""

    next_index: int
    end_index: int

    def __iter__(self) -> Iterator[bytes]: ...

    def __next__(self) -> bytes: ...

    def cancel(self) -> None:
        """Wake a thread that waits for a block, with an error; from any thread."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
