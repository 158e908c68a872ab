"""KeptJobs: jobs that were planned, for the next time that the same rows are asked for.

    kept = jobs.of(node, sink_format, parallelism)      None: rows that may differ without a sign of it
    kept.job                                            bytes of its executor and conditions; None: there is none
    kept.keep(data, conditions)                         the executor has planned it

A job is planned anew once a file that it reads has another stamp, and where its executor finds other conditions. It
goes with its node, and when the jobs of an environment take more than BYTES_MAX, of which those go first that were not
run for the longest time.

Held by: tests/integration/test_kept_jobs.py
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from functools import partial
from typing import Final

from engine.formats.registry import format_of
from engine.graph.plan import Source
from engine.graph.source_spec import SourceSpec
from engine.lowering.job_moment import asks_for_it
from engine.lowering.logical_node import LogicalNode, reachable

BYTES_MAX: Final = 16 << 20

#: node by its id, format of the sink, number of subtasks
_Key = tuple[int, str, int]


class KeptJob:
    """The place for the job of a node whose sources have some stamps. Thread: any; of two that plan it, one is kept."""

    __slots__ = ("_node", "_owner", "job", "sources", "stamps")

    def __init__(
        self,
        owner: KeptJobs,
        node: weakref.ref[LogicalNode],
        sources: tuple[SourceSpec, ...],
        stamps: tuple[Hashable, ...],
    ) -> None:
        self._owner = owner
        self._node = node
        self.sources = sources
        self.stamps = stamps
        #: bytes of the job, and the conditions under which it was planned
        self.job: tuple[bytes, Hashable] | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of the job."""
        return 0 if self.job is None else len(self.job[0])

    def keep(self, data: bytes, conditions: Hashable) -> None:
        """Take a job that was planned under some conditions."""
        self.job = data, conditions
        self._owner.count()


class KeptJobs:
    """Jobs of an environment. Thread: any."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.RLock()
        self._jobs: OrderedDict[_Key, KeptJob] = OrderedDict()  # guarded by: self._lock

    def of(self, node: LogicalNode, sink_format: str, parallelism: int) -> KeptJob | None:
        """Return the place for the job that writes a node's rows, another one once files have changed."""
        key = (id(node), sink_format, parallelism)
        with self._lock:
            kept = self._jobs.get(key)
        sources = _sources_of(node) if kept is None else kept.sources
        stamps = None if sources is None else _stamps_of(sources)
        if sources is None or stamps is None:
            return None
        with self._lock:
            kept = self._jobs.get(key)
            if kept is None or kept.stamps != stamps:
                # A thread that still plans the former files keeps its job in a place that is not found any more.
                kept = KeptJob(self, weakref.ref(node, partial(self.drop, key)), sources, stamps)
                self._jobs[key] = kept
            self._jobs.move_to_end(key)
            return kept

    def count(self) -> None:
        """Drop jobs that were not run for long while all take too much."""
        with self._lock:
            size = sum(each.size_bytes for each in self._jobs.values())
            while size > self._bytes_max:
                size -= self._jobs.popitem(last=False)[1].size_bytes

    def drop(self, key: _Key, _node: weakref.ref[LogicalNode]) -> None:
        """Forget the job of a node that is gone."""
        with self._lock:
            self._jobs.pop(key, None)

    def clear(self) -> None:
        """Forget all jobs."""
        with self._lock:
            self._jobs.clear()


def _sources_of(node: LogicalNode) -> tuple[SourceSpec, ...] | None:
    """Return the sources below a node; None where rows are cached, whose source comes later, or by the moment."""
    nodes = list(reachable([node]))
    if any(each.cached is not None for each in nodes) or asks_for_it(each.operator for each in nodes):
        return None
    return tuple(each.operator.spec for each in nodes if isinstance(each.operator, Source))


def _stamps_of(sources: tuple[SourceSpec, ...]) -> tuple[Hashable, ...] | None:
    """Return the stamps of sources; None where one has none, or its files cannot be found."""
    found = []
    for spec in sources:
        try:
            stamps = format_of(spec).stamps(spec)
        except OSError:
            return None
        if stamps is None:
            return None
        found.append(stamps)
    return tuple(found)
