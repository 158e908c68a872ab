"""FilterRegistry: run-time filters go from a join to the tasks of the same process that send it rows to probe with.

    consumer   offer(partition, subpartition, filters)   its build side is complete; None: there is no filter of it
               withdraw(partition, subpartition)         it needs no rows any more
    producer   wait(partition, parts, check) ─► the filters of all consumers, or None: one of them has none

Each consumer has a part of the build side, so a row may be left out only where all parts say so: a filter that is not
there yet could have its key. The producer waits for them before it reads its first row. It would be held up anyway as
soon as its first buffers are full, since a join takes no probe row before its build side is complete; so nothing waits
that would not wait without filters, and no circle can come of it.

A partition's id names the attempt that produces it: a new attempt of either side, which means one of both, since they
are in one pipelined region, asks and offers anew, and filters of rows that an earlier attempt had are never seen.

A producer is woken when the last filter of its partition is there, or one says that there is none, and not by each of
the offers, of which there are as many as producers times consumers. Waits end when the task is cancelled (``check`` is
called ten times a second). Thread: any.

Source: Impala's coordinator, which combines the filters of partitioned joins and sends them to the scans.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.exchange.passing import before_wait

if TYPE_CHECKING:
    from engine.ids import ResultPartitionId
    from engine.operators.runtime_filters import RuntimeFilters

_CHECK_EVERY_S = 0.1


class FilterRegistry:
    """The runtime filters that consumers of this process's partitions have offered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._offers: dict[ResultPartitionId, dict[int, RuntimeFilters | None]] = {}
        #: number of parts that each waiting producer needs, and the event that ends its wait; guarded by: self._lock
        self._waiting: dict[ResultPartitionId, tuple[int, threading.Event]] = {}

    @property
    def partition_count(self) -> int:
        """Partitions for which there is an offer."""
        with self._lock:
            return len(self._offers)

    def offer(self, partition: ResultPartitionId, subpartition: int, filters: RuntimeFilters | None) -> None:
        """Offer the filters of a subpartition's reader to the producer of the partition."""
        with self._lock:
            offers = self._offers.setdefault(partition, {})
            offers[subpartition] = filters
            part_count, complete = self._waiting.get(partition, (0, None))
        if complete is not None and (filters is None or len(offers) == part_count):
            complete.set()

    def withdraw(self, partition: ResultPartitionId, subpartition: int) -> None:
        """Forget an offer. No effect when there is none."""
        with self._lock:
            offers = self._offers.get(partition, {})
            offers.pop(subpartition, None)
            if not offers:
                self._offers.pop(partition, None)

    def wait(
        self, partition: ResultPartitionId, part_count: int, check: Callable[[], None]
    ) -> list[RuntimeFilters] | None:
        """Return the filters of all readers of a partition; None as soon as one of them has none.

        Raises: what ``check`` raises.
        """
        complete = threading.Event()
        with self._lock:
            self._waiting[partition] = part_count, complete
        try:
            while True:
                with self._lock:
                    offers = list(self._offers.get(partition, {}).values())
                if None in offers:
                    return None
                if len(offers) == part_count:
                    return [filters for filters in offers if filters is not None]
                check()
                before_wait()
                complete.wait(_CHECK_EVERY_S)
        finally:
            with self._lock:
                del self._waiting[partition]
