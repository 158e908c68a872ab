"""Threads of aggregates: groups of one subtask that several threads merge.

    source, read by threads ─► ... ─► aggregate, one subtask        where more rows come than the caches hold groups

A part of a plan that has one subtask gathers all of its groups in it. While they are few it goes on as fast as rows are
read; of many, most of its time is spent on merging partitions of them (``aggregate.state_partitions``), each by itself:
so there are as many threads for it as there would be subtasks. How many groups there are is a guess, so it is the rows
that count, and whether there are enough groups is seen when they are there.

The same goes for groups whose values are held (``window.partitioned_groups``), which lie in partitions from the start.

Not so: what runs in other processes, whose slots have a thread each.

Held by: tests/optimizer/test_aggregate_threads.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from engine.graph.operator_descriptor import HashAggregateOperator, PartitionedAggregateOperator
from engine.optimizer.physical_plan import PhysicalNode
from engine.optimizer.scan_planning import THREADS_MAX
from engine.optimizer.settings import OptimizerSettings

#: rows of an input that cannot make more groups than the caches hold
FEW_ROWS: Final = 1 << 18


def with_aggregate_threads(nodes: Sequence[PhysicalNode], settings: OptimizerSettings) -> tuple[PhysicalNode, ...]:
    """Return the nodes with the threads of aggregates."""
    threads = min(THREADS_MAX, settings.parallelism)
    if threads == 1 or not (settings.has_small_parts and settings.is_one_process):
        return tuple(nodes)
    return tuple(_with_threads(node, nodes, threads) for node in nodes)


def _with_threads(node: PhysicalNode, nodes: Sequence[PhysicalNode], threads: int) -> PhysicalNode:
    operator = node.descriptor.operator
    if not isinstance(operator, HashAggregateOperator | PartitionedAggregateOperator) or node.parallelism > 1:
        return node
    if isinstance(operator, HashAggregateOperator) and (
        not operator.keys or operator.by_run or operator.phase not in ("single", "final")
    ):
        return node
    if sum(nodes[channel.source].estimates.rows for channel in node.inputs) <= FEW_ROWS:
        return node
    return node.with_operator(msgspec.structs.replace(operator, threads=threads))
