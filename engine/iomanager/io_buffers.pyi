from typing import Self, final

from engine.memory.manager import MemoryManager

@final
class IoBuffers:
    """Recycled memory for blocks on their way to and from disk."""

    keep_bytes: int
    bytes_out: int
    def __new__(cls, keep_bytes: int = 8388608, manager: MemoryManager | None = None) -> Self: ...
