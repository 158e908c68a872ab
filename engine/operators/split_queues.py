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

from engine.graph.source_spec import SourceSplit


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
        queue = SplitQueue(self, key, splits)
        with self._lock:
            self._queues.setdefault(key, []).append(queue)
        return queue

    def take(self, queue: SplitQueue) -> SourceSplit | None:
        """Return the next split for a queue; see ``SplitQueue.take``."""
        with self._lock:
            if queue.left:
                queue.left_bytes -= queue.left[0].size_bytes
                return queue.left.popleft()
            others = [other for other in self._queues.get(queue.key, ()) if other.left]
            if not others or queue.has_left:
                return None
            fullest = max(others, key=lambda other: other.left_bytes)
            split = fullest.left.pop()
            fullest.left_bytes -= split.size_bytes
            return split

    def leave(self, queue: SplitQueue) -> None:
        """Remove a queue; see ``SplitQueue.leave``."""
        with self._lock:
            if queue.has_left:
                return
            queue.has_left = True
            queue.left.clear()
            queues = self._queues[queue.key]
            queues.remove(queue)
            if not queues:
                del self._queues[queue.key]


class SplitQueue:
    """The splits of one subtask. The fields are guarded by the lock of all queues."""

    def __init__(self, queues: SplitQueues, key: Hashable, splits: Sequence[SourceSplit]) -> None:
        self.key = key
        self.left = deque(splits)
        self.left_bytes = sum(split.size_bytes for split in splits)
        self.has_left = False
        self._queues = queues

    def take(self) -> SourceSplit | None:
        """Return the next split to read, None when no queue has one left."""
        return self._queues.take(self)

    def leave(self) -> None:
        """Drop the remaining splits, which need not be read. Idempotent."""
        self._queues.leave(self)
