"""KeptJobs: jobs that were planned, for the next time that the same rows are asked for.

    kept = jobs.of(node, sink_format, parallelism)      None: rows that may differ without a sign of it
    kept.job                                            bytes of its executor and conditions; None: there is none
    kept.keep(data, conditions)                         the executor has planned it

A job is planned anew once a file that it reads has another stamp, and where its executor finds other conditions. Nodes
that ask for the same have one job, such as those of a function that builds its data set with each call. When the jobs
of an environment take more than BYTES_MAX, those go first that were not run for the longest time.

Held by: tests/integration/test_kept_jobs.py
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from engine.formats.registry import format_of
from engine.graph.plan import Source
from engine.graph.source_spec import SourceSpec
from engine.lowering.job_moment import asks_for_it
from engine.lowering.logical_node import LogicalNode, reachable

BYTES_MAX: Final = 16 << 20
#: bytes of a place beside its job, about
_PLACE_BYTES: Final = 1024
_encoder: Final = msgspec.msgpack.Encoder()

#: digest of what is asked for, format of the sink, number of subtasks
_Key = tuple[bytes, str, int]


class _Asked(NamedTuple):
    """Digest of the nodes that a node needs, itself included, and their sources."""

    digest: bytes
    sources: tuple[SourceSpec, ...]


class KeptJob:
    """The place for the job of a node whose sources have some stamps. Thread: any; of two that plan it, one is kept."""

    __slots__ = ("_owner", "job", "stamps")

    def __init__(self, owner: KeptJobs, stamps: tuple[Hashable, ...]) -> None:
        self._owner = owner
        self.stamps = stamps
        #: bytes of the job, and the conditions under which it was planned
        self.job: tuple[bytes, Hashable] | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of the job and its place."""
        return _PLACE_BYTES + (0 if self.job is None else len(self.job[0]))

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
        self._asked: WeakKeyDictionary[LogicalNode, _Asked | None] = WeakKeyDictionary()  # guarded by: self._lock

    def of(self, node: LogicalNode, sink_format: str, parallelism: int) -> KeptJob | None:
        """Return the place for the job that writes a node's rows, another one once files have changed."""
        asked = self._asked_by(node)
        stamps = None if asked is None else _stamps_of(asked.sources)
        if asked is None or stamps is None:
            return None
        key = (asked.digest, sink_format, parallelism)
        with self._lock:
            kept = self._jobs.get(key)
            if kept is not None and kept.stamps == stamps:
                self._jobs.move_to_end(key)
                return kept
            # A thread that still plans the former files keeps its job in a place that is not found any more.
            kept = self._jobs[key] = KeptJob(self, stamps)
            self._jobs.move_to_end(key)
            self.count()
            return kept

    def _asked_by(self, node: LogicalNode) -> _Asked | None:
        with self._lock:
            if node in self._asked:
                return self._asked[node]
        asked = _asked_of(list(reachable([node])))
        with self._lock:
            self._asked[node] = asked
        return asked

    def count(self) -> None:
        """Drop jobs that were not run for long while all take too much."""
        with self._lock:
            size = sum(each.size_bytes for each in self._jobs.values())
            while size > self._bytes_max:
                size -= self._jobs.popitem(last=False)[1].size_bytes

    def clear(self) -> None:
        """Forget all jobs."""
        with self._lock:
            self._jobs.clear()


def _asked_of(nodes: Sequence[LogicalNode]) -> _Asked | None:
    """Return the digest and the sources of nodes; None where their rows are cached, or differ by the moment."""
    if any(each.cached is not None for each in nodes) or asks_for_it(each.operator for each in nodes):
        return None
    places = {id(node): place for place, node in enumerate(nodes)}
    schemas = {id(node.schema): node.schema.serialize().to_pybytes() for node in nodes}
    told = [
        (
            node.operator,
            [places[id(source)] for source in node.inputs],
            schemas[id(node.schema)],
            node.name,
            node.parallelism,
        )
        for node in nodes
    ]
    sources = tuple(node.operator.spec for node in nodes if isinstance(node.operator, Source))
    return _Asked(blake2b(_encoder.encode(told), digest_size=16).digest(), sources)


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
