"""StoreTraffic: requests to stores and bytes of objects, counted for the task that asks.

    with counted(traffic): ...              of the thread, until the end of the block
    traffic = current_traffic()             for a thread that asks on behalf of this one: counted(traffic) there
    note(root, requests=1, read_bytes=..., written_bytes=...)

A request that the client repeats by itself counts once; a listing counts once for a thousand names. An environment has
counters for what makes its plans, which the next job takes over; a JobMaster has some for what publishes its outputs.

Held by: tests/storage/test_store_counters.py
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

_current = threading.local()


class StoreTraffic:
    """Counters by store: [requests, bytes read, bytes written]. Thread: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: guarded by: _lock
        self._counts: dict[str, list[int]] = {}

    def add(self, root: str, requests: int, read_bytes: int, written_bytes: int) -> None:
        """Count."""
        with self._lock:
            counts = self._counts.setdefault(root, [0, 0, 0])
            for index, number in enumerate((requests, read_bytes, written_bytes)):
                counts[index] += number

    def by_store(self) -> dict[str, tuple[int, int, int]]:
        """Return (requests, bytes read, bytes written) by scheme and bucket."""
        with self._lock:
            return {root: (counts[0], counts[1], counts[2]) for root, counts in self._counts.items()}

    def taken(self) -> dict[str, tuple[int, int, int]]:
        """Return the counts, and begin again."""
        with self._lock:
            counts, self._counts = self._counts, {}
        return {root: (counts[root][0], counts[root][1], counts[root][2]) for root in counts}


def current_traffic() -> StoreTraffic | None:
    """Return the counters of this thread; None where nothing is counted."""
    found: StoreTraffic | None = getattr(_current, "traffic", None)
    return found


class _Counted:
    """A block in which the requests of the thread that enters it are counted."""

    __slots__ = ("_before", "_traffic")

    def __init__(self, traffic: StoreTraffic | None) -> None:
        self._traffic = traffic

    def __enter__(self) -> None:
        self._before, _current.traffic = current_traffic(), self._traffic

    def __exit__(self, *_: object) -> None:
        _current.traffic = self._before


def counted(traffic: StoreTraffic | None) -> AbstractContextManager[None]:
    """Count what this thread asks for."""
    return _Counted(traffic)


def note(root: str, *, requests: int = 0, read_bytes: int = 0, written_bytes: int = 0) -> None:
    """Count for this thread."""
    traffic = current_traffic()
    if traffic is not None:
        traffic.add(root, requests, read_bytes, written_bytes)
