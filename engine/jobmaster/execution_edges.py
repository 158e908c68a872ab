"""InputEdges, ConsumerEdges: the edges between subtasks, made when they are asked for.

    vertex.inputs[0]      InputEdges      an ExecutionEdge to each producer that the subtask reads
    partition.consumers   ConsumerEdges   an ExecutionEdge from each subtask that reads the partition

A thousand producers and a thousand consumers have a million edges, each of which follows from the pattern and the
numbers of its ends. So none is kept.

Held by: tests/jobmaster/test_execution_edges.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from engine.graph.job_graph import JobEdge
from engine.graph.ship_strategy import DistributionPattern
from engine.jobmaster.edge_pattern import consumers_of, producers_of, subpartition_index
from engine.jobmaster.execution_vertex import ExecutionEdge, ExecutionVertex, IntermediateResultPartition, SubtaskInput
from engine.jobmaster.index_set import IndexSet


class _Edges(Sequence[ExecutionEdge]):
    """Edges by number."""

    __slots__ = ()

    def edge(self, number: int) -> ExecutionEdge:
        """Return the edge of that number, which is there."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> ExecutionEdge: ...
    @overload
    def __getitem__(self, index: slice) -> list[ExecutionEdge]: ...
    def __getitem__(self, index: int | slice) -> ExecutionEdge | list[ExecutionEdge]:
        numbers = range(len(self))[index]
        return self.edge(numbers) if isinstance(numbers, int) else [self.edge(number) for number in numbers]

    def __iter__(self) -> Iterator[ExecutionEdge]:
        return map(self.edge, range(len(self)))


class InputEdges(_Edges, SubtaskInput):
    """The edges of one JobEdge into one subtask.

    Args: partitions: of all producers; consumers: subtasks of the vertex.
    """

    __slots__ = (
        "_begin",
        "_consumers",
        "_count",
        "_pattern",
        "_producers",
        "consumer",
        "first_producer",
        "job_edge",
    )

    def __init__(
        self,
        job_edge: JobEdge,
        pattern: DistributionPattern,
        partitions: list[IntermediateResultPartition],
        consumer: ExecutionVertex,
        consumers: int,
    ) -> None:
        producers = producers_of(pattern, len(partitions), consumers, consumer.subtask_index)
        self.job_edge = job_edge
        self.consumer = consumer
        self.first_producer = producers.start
        self._producers, self._consumers = len(partitions), consumers
        #: partitions that are read; the edges of all producers share one list
        self.partitions = partitions
        if len(producers) < len(partitions):
            self.partitions = partitions[producers.start : producers.stop]
        self._pattern = pattern
        self._begin, self._count = -1, 1
        if job_edge.ranges:
            begin, end = job_edge.ranges[consumer.subtask_index]
            self._begin, self._count = begin, end - begin
        elif pattern is DistributionPattern.ALL_TO_ALL:
            self._begin = consumer.subtask_index

    def __len__(self) -> int:
        return len(self.partitions)

    def edge(self, number: int) -> ExecutionEdge:
        """Return the edge to the producer of that number among those that are read."""
        begin, parts = self._begin, None
        if begin < 0:
            producer, consumer = self.first_producer + number, self.consumer.subtask_index
            begin = subpartition_index(self._pattern, self._producers, self._consumers, producer, consumer)
        if self.job_edge.shares:
            parts = self._parts(self.first_producer + number)
        return ExecutionEdge(self.job_edge, self.partitions[number], self.consumer, begin, self._count, parts)

    @property
    def reads(self) -> list[Sequence[tuple[int, tuple[int, int]]]]:
        """The subpartitions and parts that each edge reads; one entry: all of them read the same."""
        is_same = self._begin >= 0 and self._count == 1 and not self.job_edge.shares
        return [self.edge(0).channels] if is_same else super().reads

    @property
    def read_alike(self) -> list[IntermediateResultPartition]:
        """One partition for each set of finished consumers: all of them, but for results that are read whole."""
        return self.partitions[:1] if self._pattern is DistributionPattern.ALL_TO_ALL else self.partitions

    def _parts(self, producer_index: int) -> tuple[tuple[int, tuple[int, int]], ...]:
        """Return the parts of a producer that are read where subpartitions are cut."""
        shares = self.job_edge.shares[self.consumer.subtask_index]
        parts = ((share.subpartition, share.part_of(producer_index)) for share in shares)
        return tuple((subpartition, part) for subpartition, part in parts if part[0] < part[1])


class ConsumerEdges(_Edges):
    """The edges from one partition to those who read it. Args: inputs: of these subtasks."""

    __slots__ = ("_inputs", "_producer_index")

    def __init__(self, inputs: list[InputEdges], producer_index: int) -> None:
        self._inputs = inputs
        self._producer_index = producer_index

    def __len__(self) -> int:
        return len(self._inputs)

    def edge(self, number: int) -> ExecutionEdge:
        """Return the edge from the consumer of that number among those that read it."""
        inputs = self._inputs[number]
        return inputs.edge(self._producer_index - inputs.first_producer)


def connect(
    job_edge: JobEdge,
    pattern: DistributionPattern,
    partitions: list[IntermediateResultPartition],
    subtasks: Sequence[ExecutionVertex],
) -> None:
    """Make the edges of a JobEdge from these partitions into all subtasks of a vertex."""
    inputs = [InputEdges(job_edge, pattern, partitions, subtask, len(subtasks)) for subtask in subtasks]
    for subtask, edges in zip(subtasks, inputs, strict=True):
        subtask.inputs.append(edges)
    finished = IndexSet()
    for producer_index, partition in enumerate(partitions):
        partition.finished_consumers = finished if pattern is DistributionPattern.ALL_TO_ALL else IndexSet()
        readers = consumers_of(pattern, len(partitions), len(subtasks), producer_index)
        own = inputs if len(readers) == len(inputs) else inputs[readers.start : readers.stop]
        partition.consumers = ConsumerEdges(own, producer_index)
