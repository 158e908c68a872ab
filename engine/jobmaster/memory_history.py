"""MemoryHistory: the memory that a job's TaskManagers use over its time, and what it has spilled. Pure.

    noted(memory of one TaskManager) ─► most of each within an interval; one that reports late has its last report
    the interval is over ─► one point: the sums over TaskManagers
    _POINTS_MAX points   ─► two become one, and the interval is twice as long

So the history of a job of any length has from half of _POINTS_MAX points to all, and a point costs one addition for
each TaskManager. It begins with each JobMaster: what was before a new leader is not known.

Held by: tests/jobmaster/test_memory_history.py
"""

from __future__ import annotations

from typing import Final

import msgspec

from engine.gateways.memory_use import MemoryInUse, MemoryPoint
from engine.ids import ResourceId

_POINTS_MAX: Final = 240
#: first interval, which is that of reports
_INTERVAL_MS: Final = 200
_SILENT_MS: Final = 1000
_MEMORY: Final = ("resident_bytes", "managed_bytes", "arrow_bytes", "network_bytes")


class MemoryHistory:
    """The points of one job."""

    def __init__(self) -> None:
        self._points: list[MemoryPoint] = []
        self._interval_ms = _INTERVAL_MS
        #: end of the interval that has begun; None: nothing was noted
        self._end_ms: int | None = None
        #: most of each TaskManager within the interval
        self._most: dict[ResourceId, MemoryInUse] = {}
        #: last report of each TaskManager, and its time
        self._last: dict[ResourceId, tuple[MemoryInUse, int]] = {}
        self._spilled_bytes = 0

    @property
    def _silent_ms(self) -> int:
        """Time without a report after which a TaskManager counts no more: it has no task of the job."""
        return max(_SILENT_MS, 2 * self._interval_ms)

    def spilled(self, more_bytes: int) -> None:
        """Count bytes that an attempt has spilled since its last report."""
        self._spilled_bytes += max(0, more_bytes)

    def noted(self, memory: MemoryInUse, now_ms: int) -> None:
        """Take note of the memory of a TaskManager."""
        if self._end_ms is None:
            self._end_ms = now_ms + self._interval_ms
        elif now_ms >= self._end_ms:
            self._close(self._end_ms)
            passed = (now_ms - self._end_ms) // self._interval_ms + 1
            self._end_ms += passed * self._interval_ms
            self._last = {id_: last for id_, last in self._last.items() if now_ms - last[1] < self._silent_ms}
            self._most = {id_: memory for id_, (memory, _) in self._last.items()}
        self._last[memory.task_manager] = memory, now_ms
        known = self._most.get(memory.task_manager)
        self._most[memory.task_manager] = memory if known is None else _larger(known, memory)

    def points(self, now_ms: int) -> tuple[MemoryPoint, ...]:
        """Return the points so far, the last of the interval that is not over."""
        return (*self._points, self._point(now_ms)) if self._most else tuple(self._points)

    def _close(self, end_ms: int) -> None:
        self._points.append(self._point(end_ms))
        if len(self._points) >= _POINTS_MAX:
            self._points = [_joined(*pair) for pair in zip(self._points[::2], self._points[1::2], strict=True)]
            self._interval_ms *= 2

    def _point(self, time_ms: int) -> MemoryPoint:
        resident = managed = arrow = network = largest = 0
        for each in self._most.values():
            resident += each.resident_bytes
            managed += each.managed_bytes
            arrow += each.arrow_bytes
            network += each.network_bytes
            largest = max(largest, each.resident_bytes)
        return MemoryPoint(time_ms, resident, managed, arrow, network, self._spilled_bytes, largest, len(self._most))


def _larger(one: MemoryInUse, other: MemoryInUse) -> MemoryInUse:
    return msgspec.structs.replace(one, **{name: max(getattr(one, name), getattr(other, name)) for name in _MEMORY})


def _joined(earlier: MemoryPoint, later: MemoryPoint) -> MemoryPoint:
    names = (*_MEMORY, "largest_bytes", "task_managers")
    return msgspec.structs.replace(later, **{name: max(getattr(earlier, name), getattr(later, name)) for name in names})
