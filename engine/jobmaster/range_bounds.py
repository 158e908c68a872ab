"""Bounds of the ranges of a sorted result, from the samples of all of its producers. Pure.

    producers' samples (key bytes, weight)  ─► all in order of keys ─► bounds at 1/p, 2/p, ... of the total weight

    range k = rows with bound[k - 1] <= key < bound[k]        no bound below the first range, none above the last

Keys are opaque bytes that compare as the rows do. A key that is heavier than a share is several bounds at once: the
ranges between them are empty, and all of its rows are in one.

Bounds of a result are chosen once. Whatever happens to producers and consumers afterwards, any bounds give a right
result; consumers that disagree about them would not.

Source: the sampling range partitioner of Flink's DataSet API (RangeBoundaryBuilder); here without a pass of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.graph.deployment import KeyRange, RangeSamples
from engine.graph.ship_strategy import SORTED_RUNS
from engine.ids import IntermediateDataSetId
from engine.jobmaster.execution_vertex import ExecutionEdge, ExecutionVertex


def pick_bounds(samples: Iterable[RangeSamples], range_count: int) -> tuple[bytes, ...]:
    """Return the range_count - 1 bounds that divide the weight most evenly, in order."""
    weighted = sorted(pair for each in samples for pair in zip(each.keys, each.weights, strict=True))
    total = sum(weight for _, weight in weighted)
    bounds: list[bytes] = []
    below = 0
    for key, weight in weighted:
        # a sample stands for what follows it: its key is the bound nearest to any target inside
        while len(bounds) < range_count - 1 and below + weight / 2 >= total * (len(bounds) + 1) / range_count:
            bounds.append(key)
        below += weight
    last = weighted[-1][0] if weighted else b""
    return tuple(bounds) + (last,) * (range_count - 1 - len(bounds))


def range_of(bounds: tuple[bytes, ...], index: int) -> KeyRange:
    """Return the range of one consumer."""
    lower = bounds[index - 1] if index > 0 else None
    upper = bounds[index] if index < len(bounds) else None
    return KeyRange(lower, upper)


def consumer_range(edges: Sequence[ExecutionEdge]) -> KeyRange:
    """Return the range of the consumer of these edges, which lead to all producers of one sorted result."""
    first, consumer = edges[0].partition, edges[0].consumer
    if first.range_bounds is None:
        samples = [
            edge.partition.producer.current.partition_samples[edge.partition.data_set.id.output_index] for edge in edges
        ]
        first.range_bounds = pick_bounds(samples, consumer.job_vertex.parallelism)
    return range_of(first.range_bounds, consumer.subtask_index)


def choose_bounds(subtasks: Iterable[ExecutionVertex]) -> list[tuple[IntermediateDataSetId, tuple[bytes, ...]]]:
    """Choose the bounds of the sorted results that these subtasks read, and return the new ones."""
    chosen: list[tuple[IntermediateDataSetId, tuple[bytes, ...]]] = []
    for edges in [edges for subtask in subtasks for edges in subtask.inputs]:
        partition = edges.partitions[0]
        if partition.data_set.partitioner.kind == SORTED_RUNS and partition.range_bounds is None:
            consumer_range(edges)
            assert partition.range_bounds is not None, "consumer_range chooses them"
            chosen.append((partition.data_set.id, partition.range_bounds))
    return chosen
