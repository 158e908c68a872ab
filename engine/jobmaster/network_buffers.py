"""Network buffers that a job can use: the size of a MiniCluster's network pool.

Each subtask has one pool for each of its data sets: two buffers for each subpartition and some floating ones. A pool
that is smaller makes a job slower, never fail. Pure.

Source: Flink's NettyShuffleUtils.computeNetworkBuffersForAnnouncing.
Held by: tests/minicluster/test_minicluster.py
"""

from __future__ import annotations

from engine.graph.job_graph import JobGraph
from engine.jobmaster.edge_pattern import subpartition_count

_FLOATING_BUFFERS = 8


def network_segments(job_graph: JobGraph) -> int:
    """Return the buffers of all subtasks together."""
    total = 0
    for vertex in job_graph.vertices:
        for data_set in vertex.outputs:
            consumers = job_graph.vertex(data_set.consumer).parallelism
            channels = subpartition_count(data_set.partitioner.pattern, vertex.parallelism, consumers, 0)
            total += vertex.parallelism * (2 * channels + _FLOATING_BUFFERS)
    return total
