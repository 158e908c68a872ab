"""Threads of scans: sources that one subtask reads with several threads.

    source, one subtask ─► anything          where it has enough to read, and more processors than subtasks

A part of a plan that has one subtask reads with as many threads as there would be subtasks, at least THREAD_BYTES each:
what comes behind the source goes on meanwhile. The rows keep their order.

Not so: sources in order of another thing than their splits (a top-n, a rate limit), formats that are not read so
(``SourceFormat.is_read_by_threads``), and what runs in other processes, whose slots have a thread each.

Held by: tests/optimizer/test_scan_planning.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from engine.formats.registry import format_of
from engine.graph.operator_descriptor import SourceOperator
from engine.optimizer.physical_plan import PhysicalNode
from engine.optimizer.settings import OptimizerSettings

#: bytes from which on another thread is worth its start
THREAD_BYTES: Final = 1e6
#: largest number of threads: what works on the rows is one
THREADS_MAX: Final = 8


def with_scan_threads(nodes: Sequence[PhysicalNode], settings: OptimizerSettings) -> tuple[PhysicalNode, ...]:
    """Return the nodes with the threads of sources."""
    if not settings.has_small_parts or not settings.is_one_process:
        return tuple(nodes)
    return tuple(_with_threads(node, min(THREADS_MAX, settings.parallelism)) for node in nodes)


def _with_threads(node: PhysicalNode, most: int) -> PhysicalNode:
    operator = node.descriptor.operator
    if not isinstance(operator, SourceOperator) or node.parallelism > 1 or operator.is_replicated:
        return node
    threads = min(most, len(operator.spec.splits), int(node.costs.disk // THREAD_BYTES))
    if threads < 2 or operator.rate_limit is not None or operator.top is not None:
        return node
    if not format_of(operator.spec).is_read_by_threads(operator.spec):
        return node
    return node.with_operator(msgspec.structs.replace(operator, threads=threads))
