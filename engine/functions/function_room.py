"""FunctionRoom: what the files of a function's waiting rows take of the limit of their disk.

    room.reserve(size) ... room.give_back(size)        close() gives back what is left

The function is in a process of its own, or in a thread: its files are counted here, as spilled rows are.

Held by: tests/functions/test_group_rows.py
"""

from __future__ import annotations

from engine.errors import DiskFullError
from engine.iomanager.disk_limit import DiskShare
from engine.iomanager.disk_use import room_advice


class FunctionRoom:
    """The room of one function. Thread: that of its task."""

    def __init__(self, share: DiskShare, function_name: str) -> None:
        self._share = share
        self._function_name = function_name
        self._taken_bytes = 0

    def reserve(self, size_bytes: int) -> None:
        """Take bytes before they are written. Raises: DiskFullError."""
        try:
            self._share.reserve(size_bytes)
        except OSError as error:
            raise DiskFullError(
                f"{self._function_name} keeps rows that it has not read yet, because it read the other side of their "
                f"pair first, and there is no room for them: {room_advice([self._share.limit], size_bytes)}"
            ) from error
        self._taken_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Give bytes back, unless that was done for all of them."""
        size_bytes = min(size_bytes, self._taken_bytes)
        self._share.give_back(size_bytes)
        self._taken_bytes -= size_bytes

    def close(self) -> None:
        """Give back what is left; idempotent."""
        self.give_back(self._taken_bytes)
