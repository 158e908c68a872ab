"""Scans of one subtask: read by several threads, or by the join that needs their rows.

    source, one subtask ─► anything          where it has enough to read, and more processors than subtasks

A part of a plan that has one subtask reads with as many threads as there would be subtasks, at least THREAD_BYTES each:
what comes behind the source goes on meanwhile. The rows keep their order.

Not so: sources in order of another thing than their splits (a top-n, a rate limit), formats that are not read so
(``SourceFormat.is_read_by_threads``), and what runs in other processes, whose slots have a thread each.

A source of at most SMALL_ROWS rows that one thread reads is small: reading it takes less than a task of its own, and
the join that builds a table from its rows may read it itself (``graph.chained_sources``).

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

#: bytes from which on another thread is worth its start, and what threads take from each other at the interpreter
THREAD_BYTES: Final = 16e6
#: largest number of threads: what works on the rows is one
THREADS_MAX: Final = 8
#: limit of the rows of a small source
SMALL_ROWS: Final = 1 << 17


def with_scan_threads(nodes: Sequence[PhysicalNode], settings: OptimizerSettings) -> tuple[PhysicalNode, ...]:
    """Return the nodes with the threads of sources, and small ones marked."""
    has_threads = settings.has_small_parts and settings.is_one_process
    return tuple(_with_threads(node, min(THREADS_MAX, settings.parallelism) if has_threads else 1) for node in nodes)


def _with_threads(node: PhysicalNode, most: int) -> PhysicalNode:
    operator = node.descriptor.operator
    if not isinstance(operator, SourceOperator) or node.parallelism > 1 or operator.is_replicated:
        return node
    if operator.rate_limit is not None or operator.top is not None:
        return node
    if not format_of(operator.spec).is_read_by_threads(operator.spec):
        return node
    splits = operator.spec.splits
    threads = max(1, min(most, len(splits), int(node.costs.disk // THREAD_BYTES)))
    is_known = all(split.row_count >= 0 for split in splits)
    is_small = threads == 1 and is_known and sum(split.row_count for split in splits) <= SMALL_ROWS
    return node.with_operator(msgspec.structs.replace(operator, threads=threads, is_small=is_small))
