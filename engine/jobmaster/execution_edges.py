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
from engine.graph.subpartition_share import WHOLE
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


class _Connection:
    """The edges of one JobEdge: their pattern, and their ends."""

    __slots__ = ("inputs", "is_alike", "is_whole", "job_edge", "partitions", "pattern")

    def __init__(
        self,
        job_edge: JobEdge,
        pattern: DistributionPattern,
        partitions: list[IntermediateResultPartition],
        consumers: Sequence[ExecutionVertex],
    ) -> None:
        self.job_edge = job_edge
        self.pattern = pattern
        #: partitions of all producers, and the edges into each consumer
        self.partitions = partitions
        #: True if each consumer reads from every producer
        self.is_whole = pattern is DistributionPattern.ALL_TO_ALL
        #: True if a consumer reads the same subpartitions of each of its producers
        self.is_alike = not job_edge.shares and (self.is_whole or bool(job_edge.ranges))
        self.inputs: list[InputEdges] = []
        first = partitions[:1]
        for each in consumers:
            read = self._read_by(each, len(consumers))
            self.inputs.append(InputEdges(self, each, read, first if self.is_whole else read))

    def _read_by(self, consumer: ExecutionVertex, consumers: int) -> list[IntermediateResultPartition]:
        """Return the partitions that a consumer reads; all that read everything share one list."""
        producers = producers_of(self.pattern, len(self.partitions), consumers, consumer.subtask_index)
        whole = len(producers) == len(self.partitions)
        return self.partitions if whole else self.partitions[producers.start : producers.stop]

    def readers_of(self, producer_index: int) -> range:
        """Return the numbers of the consumers of a producer."""
        return consumers_of(self.pattern, len(self.partitions), len(self.inputs), producer_index)

    def subpartitions(self, producer_index: int, consumer_index: int) -> tuple[int, int]:
        """Return the first subpartition, and how many, that a consumer reads of a producer."""
        if self.is_whole and not self.job_edge.ranges:
            return consumer_index, 1
        if self.job_edge.ranges:
            begin, end = self.job_edge.ranges[consumer_index]
            return begin, end - begin
        counts = len(self.partitions), len(self.inputs)
        return subpartition_index(self.pattern, *counts, producer_index, consumer_index), 1

    def parts(self, producer_index: int, consumer_index: int) -> tuple[tuple[int, tuple[int, int]], ...] | None:
        """Return the parts of a producer that are read where subpartitions are cut, else None."""
        if not self.job_edge.shares:
            return None
        shares = self.job_edge.shares[consumer_index]
        parts = ((share.subpartition, share.part_of(producer_index)) for share in shares)
        return tuple((subpartition, part) for subpartition, part in parts if part[0] < part[1])


class InputEdges(_Edges, SubtaskInput):
    """The edges of one JobEdge into one subtask. Args: partitions: that it reads; read_alike: see ``SubtaskInput``."""

    __slots__ = ("_connection", "consumer")

    def __init__(
        self,
        connection: _Connection,
        consumer: ExecutionVertex,
        partitions: list[IntermediateResultPartition],
        read_alike: list[IntermediateResultPartition],
    ) -> None:
        self._connection = connection
        self.consumer = consumer
        self.job_edge = connection.job_edge
        self.partitions = partitions
        self.read_alike = read_alike

    def __len__(self) -> int:
        return len(self.partitions)

    def edge(self, number: int) -> ExecutionEdge:
        """Return the edge to the producer of that number among those that are read."""
        partition, own = self.partitions[number], self._connection
        ends = partition.producer.subtask_index, self.consumer.subtask_index
        return ExecutionEdge(own.job_edge, partition, self.consumer, *own.subpartitions(*ends), own.parts(*ends))

    @property
    def reads(self) -> list[Sequence[tuple[int, tuple[int, int]]]]:
        """The subpartitions and parts that each edge reads; one entry: all of them read the same."""
        own = self._connection
        if own.is_alike or (len(self.partitions) == 1 and not self.job_edge.shares):
            ends = self.partitions[0].producer.subtask_index, self.consumer.subtask_index
            begin, count = own.subpartitions(*ends)
            if count == 1:
                return [[(begin, WHOLE)]]
        return super().reads

    def take_apart(self) -> None:
        """Cut the references to the edges of other subtasks."""
        self._connection.inputs = []


class ConsumerEdges(_Edges):
    """The edges from one partition to those who read it."""

    __slots__ = ("_connection", "_partition", "_readers")

    def __init__(self, connection: _Connection, partition: IntermediateResultPartition, readers: range) -> None:
        self._connection = connection
        self._partition = partition
        #: numbers of the consumers
        self._readers = readers

    def __len__(self) -> int:
        return len(self._readers)

    def edge(self, number: int) -> ExecutionEdge:
        """Return the edge from the consumer of that number among those that read it."""
        inputs = self._connection.inputs[self._readers[number]]
        first = inputs.partitions[0].producer.subtask_index
        return inputs.edge(self._partition.producer.subtask_index - first)


def connect(
    job_edge: JobEdge,
    pattern: DistributionPattern,
    partitions: list[IntermediateResultPartition],
    subtasks: Sequence[ExecutionVertex],
) -> None:
    """Make the edges of a JobEdge from these partitions into all subtasks of a vertex."""
    connection = _Connection(job_edge, pattern, partitions, subtasks)
    for subtask, edges in zip(subtasks, connection.inputs, strict=True):
        subtask.inputs += (edges,)
    finished, readers = IndexSet(), range(len(subtasks))
    for partition in partitions:
        if not connection.is_whole:
            finished, readers = IndexSet(), connection.readers_of(partition.producer.subtask_index)
        partition.finished_consumers = finished
        partition.consumers = ConsumerEdges(connection, partition, readers)
