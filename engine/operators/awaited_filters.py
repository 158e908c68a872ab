"""Run-time filters of the joins that a task sends its rows to: waited for before its first row is read, or probed with.

    source, or join that passes filters on ──rows──► join that makes filters of its build side, or passes others on
            ▲                  ▲                        │                │
            │                  └── filter_registry ─────┘ here           │ in another process
            └───────────────────── filter_exchange ──────────────────────┘

Held by: tests/integration/test_runtime_filters.py
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING

from engine.closing import close_all
from engine.operators.filter_exchange import read_filters
from engine.operators.runtime_filters import RuntimeFilters, together

if TYPE_CHECKING:
    from engine.graph.deployment import ResultPartitionDescriptor
    from engine.graph.runtime_filter import RuntimeFilter
    from engine.operators.operator import TaskContext


def filters_of_consumers(context: TaskContext) -> tuple[RuntimeFilters | None, Sequence[RuntimeFilter]]:
    """Wait for the filters of those that a task's rows are sent to, where these have some.

    Returns: the filters, to be closed, and what they are for; None: there are none.
    """
    for partition in context.descriptor.partitions:
        if partition.filters:
            context.waits_for = "the build side of the join that it sends rows to"
            began = perf_counter_ns()
            found = _filters_of(context, partition)
            context.filter_wait_ns += perf_counter_ns() - began
            context.waits_for = ""
            return found, partition.filters
    return None, ()


def _filters_of(context: TaskContext, partition: ResultPartitionDescriptor) -> RuntimeFilters | None:
    places = partition.filter_places
    here = partition.subpartition_count - len(places)
    parts = context.services.filter_registry.wait(partition.id, here, context.check_cancelled)
    read = [] if parts is None or not places else read_filters(context, places)
    if parts is None or read is None:
        return None
    try:
        return together([*parts, *read])
    finally:
        close_all(part.close for part in read)
