"""How the memory of a TaskManager process is divided: one number is set, the others follow.

    process size ─┬─ managed   fraction 0.4 of it, or its own size     sort, join, aggregate
                  ├─ network   fraction 0.1 of it, within min and max  buffers between tasks
                  └─ the rest  Python, Arrow, workers

Pure. A small managed budget gets smaller pages (``memory/page_size.py``); network buffers are as large as pages, so
that a page of rows is taken over by an operator as it came.
Source: Flink's process memory model, with the shares of ``taskmanager.memory.*``.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import ConfigurationError
from engine.memory.page_size import page_size_for


@dataclass(frozen=True)
class MemorySizes:
    """Sizes in bytes, and network segments as counts."""

    process_bytes: int
    managed_bytes: int
    #: of a page and of a network buffer
    page_bytes: int
    network_segments_min: int
    network_segments_max: int

    def table(self) -> str:
        """Return the division as lines for a person."""
        rest = self.process_bytes - self.managed_bytes - self.network_segments_max * self.page_bytes
        rows = (
            ("process", self.process_bytes),
            ("managed", self.managed_bytes),
            ("network, at most", self.network_segments_max * self.page_bytes),
            ("Python, Arrow, workers", max(0, rest)),
        )
        return "\n".join(f"{name:<24}{size_bytes / (1 << 20):>10.1f} MiB" for name, size_bytes in rows)


def memory_sizes(
    process_bytes: int,
    managed_bytes: int | None,
    managed_fraction: float,
    network_fraction: float,
    network_min_bytes: int,
    network_max_bytes: int,
    page_bytes_max: int,
    slot_count: int,
) -> MemorySizes:
    """Return the division for a number of slots; ``managed_bytes`` None: by fraction.

    Raises: ConfigurationError when managed memory is less than a page.
    """
    managed = int(process_bytes * managed_fraction) if managed_bytes is None else managed_bytes
    network = min(max(int(process_bytes * network_fraction), network_min_bytes), network_max_bytes)
    page_bytes = min(page_bytes_max, page_size_for(managed, slot_count))
    if managed < page_bytes:
        raise ConfigurationError(f"managed memory of {managed} bytes is less than one page of {page_bytes} bytes")
    segments_min = max(1, min(network_min_bytes, network) // page_bytes)
    segments_max = max(segments_min, network // page_bytes)
    return MemorySizes(process_bytes, managed, page_bytes, segments_min, segments_max)
