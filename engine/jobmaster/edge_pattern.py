"""The edge pattern: the producer subtasks that feed each consumer subtask, and through which subpartition.

    ALL_TO_ALL  every producer has one subpartition for each consumer
    POINTWISE   FORWARD 2 -> 2   p0─c0 p1─c1
                RESCALE 2 -> 4   p0─c0 p0─c1 p1─c2 p1─c3        producers have 2 subpartitions
                        4 -> 2   p0─c0 p1─c0 p2─c1 p3─c1        producers have 1

Pointwise groups are contiguous, so neighbours stay neighbours, and differ in size by at most one. Pure.

Source: Flink's VertexInputInfoComputationUtils and EdgeManagerBuildUtil.
Held by: tests/jobmaster/test_execution_graph.py
"""

from __future__ import annotations

from engine.graph.ship_strategy import DistributionPattern


def subpartition_count(pattern: DistributionPattern, producers: int, consumers: int, producer_index: int) -> int:
    """Return the number of subpartitions one producer has: one for each consumer it feeds."""
    if pattern is DistributionPattern.ALL_TO_ALL:
        return consumers  # one object for all producers
    return len(consumers_of(pattern, producers, consumers, producer_index))


def consumers_of(pattern: DistributionPattern, producers: int, consumers: int, producer_index: int) -> range:
    """Return the consumers that a producer feeds; its k-th subpartition belongs to the k-th of them."""
    if pattern is DistributionPattern.ALL_TO_ALL:
        return range(consumers)
    if producers >= consumers:
        consumer = producer_index * consumers // producers
        return range(consumer, consumer + 1)
    return range(-(-producer_index * consumers // producers), -(-(producer_index + 1) * consumers // producers))


def producers_of(pattern: DistributionPattern, producers: int, consumers: int, consumer_index: int) -> range:
    """Return the producers that feed a consumer."""
    if pattern is DistributionPattern.ALL_TO_ALL:
        return range(producers)
    if producers < consumers:
        producer = consumer_index * producers // consumers
        return range(producer, producer + 1)
    return range(-(-consumer_index * producers // consumers), -(-(consumer_index + 1) * producers // consumers))


def subpartition_index(
    pattern: DistributionPattern, producers: int, consumers: int, producer_index: int, consumer_index: int
) -> int:
    """Return the subpartition of the producer that belongs to the consumer."""
    return consumer_index - consumers_of(pattern, producers, consumers, producer_index).start
