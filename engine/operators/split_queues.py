"""SplitQueues: work stealing among subtasks of a source in one process: a subtask without splits reads another one's.

    queue = queues.enter(key, splits)                    a subtask's run of splits, in order
    while (split := queue.take()) is not None: ...       its own from the front, then others' from the back
    queue.leave()                                        its remaining splits need not be read

    queue 0   1 2 3 4 │ 5 6 7 8 9 ──┐ from the queue with most bytes left
    queue 1   all read ◄────────────┘ 9, then 8

Splits are divided by bytes when the job begins, and equal bytes do not take equal time: filters keep more of some rows,
and other threads need the processor. Without stealing, the last subtask would read alone at the end.

A split is in one queue at a time, and only queues that have entered lose splits: each split is read once, even if
subtasks come late or leave early. Attempts have queues of their own (the key names them).
``jobmaster.shared_splits`` decides which sources may do so.

Thread: any. Source: Blumofe and Leiserson, Scheduling Multithreaded Computations by Work Stealing, 1994.
Held by: tests/operators/test_split_queues.py
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Sequence
from operator import attrgetter
from typing import Final

from engine.graph.source_spec import SourceSplit

_SIZE_BYTES: Final = attrgetter("size_bytes")
_LEFT_BYTES: Final = attrgetter("left_bytes")


class SplitQueues:
    """The queues of one process, by source and attempt."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[Hashable, list[SplitQueue]] = {}  # guarded by: self._lock

    @property
    def queue_count(self) -> int:
        """Number of subtasks that have entered and not left, of all sources."""
        with self._lock:
            return sum(map(len, self._queues.values()))

    def enter(self, key: Hashable, splits: Sequence[SourceSplit]) -> SplitQueue:
        """Return the queue of a subtask, with its assigned splits."""
        queue = SplitQueue(self._lock, self._queues, key, splits)
        with self._lock:
            self._queues.setdefault(key, []).append(queue)
        return queue


class SplitQueue:
    """The splits of one subtask. The fields are guarded by the lock of all queues."""

    def __init__(
        self,
        lock: threading.Lock,
        queues: dict[Hashable, list[SplitQueue]],
        key: Hashable,
        splits: Sequence[SourceSplit],
    ) -> None:
        self._lock, self._queues, self._key = lock, queues, key
        self.left = deque(splits)
        self.left_bytes = sum(map(_SIZE_BYTES, splits))
        self._has_left = False

    def take(self) -> SourceSplit | None:
        """Return the next split to read, None when no queue has one left."""
        with self._lock:
            if self.left:
                split = self.left.popleft()
                self.left_bytes -= split.size_bytes
                return split
            others = [other for other in self._queues.get(self._key, ()) if other.left]
            if not others or self._has_left:
                return None
            fullest = max(others, key=_LEFT_BYTES)
            split = fullest.left.pop()
            fullest.left_bytes -= split.size_bytes
            return split

    def leave(self) -> None:
        """Drop the remaining splits, which need not be read. Idempotent."""
        with self._lock:
            if self._has_left:
                return
            self._has_left = True
            self.left.clear()
            queues = self._queues[self._key]
            queues.remove(self)
            if not queues:
                del self._queues[self._key]
