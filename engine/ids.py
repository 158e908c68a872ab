"""Typed identifiers: one frozen class for each kind of thing, so that no two can be mixed up.

Each id wraps 32 hex digits (128 random bits) or, where the identity is composed, its parts. Ids are msgspec
structs: they travel inside messages, are hashable, and print as the text a person sees in logs and on the
command line.

    JobId                 a submitted job                      chosen by the client: submission is idempotent
    JobVertexId           one vertex of a JobGraph             stable inside its job: derived from its position
    IntermediateDataSetId one output of a vertex
    ExecutionAttemptId    one attempt of one subtask           vertex, subtask index, attempt number, random part
    ResultPartitionId     what one attempt produced            data set and subtask alone are ambiguous after a failure
    AllocationId          one allocation of one slot to one job
    ResourceId            one TaskManager process

Source: the identifier classes of Apache Flink's runtime; there several are raw byte pairs, here text, because
operators read them.
Held by: tests/rpc/test_codec.py
"""

from __future__ import annotations

import os
from typing import Self

import msgspec


class _HexId(msgspec.Struct, frozen=True, order=True, gc=False):
    """Base of the ids that are 128 random bits written as 32 hex digits."""

    value: str

    @classmethod
    def random(cls) -> Self:
        """Return a fresh id from the operating system's random source."""
        return cls(os.urandom(16).hex())

    def __str__(self) -> str:
        return self.value


class JobId(_HexId, frozen=True, order=True, gc=False):
    """A submitted job."""


class AllocationId(_HexId, frozen=True, order=True, gc=False):
    """One allocation of one slot to one job."""


class ResourceId(_HexId, frozen=True, order=True, gc=False):
    """One TaskManager process."""


class JobVertexId(msgspec.Struct, frozen=True, order=True, gc=False):
    """One vertex of a JobGraph: its 0-based position in topological order."""

    index: int

    def __str__(self) -> str:
        return f"v{self.index}"


class IntermediateDataSetId(msgspec.Struct, frozen=True, order=True, gc=False):
    """One output of a vertex: the producing vertex and the 0-based number of the output."""

    producer: JobVertexId
    output_index: int

    def __str__(self) -> str:
        return f"{self.producer}.{self.output_index}"


class ExecutionAttemptId(msgspec.Struct, frozen=True, order=True, gc=False):
    """One attempt of one subtask; ``nonce`` keeps attempts of two leaders apart."""

    vertex: JobVertexId
    subtask_index: int
    attempt_number: int
    nonce: str

    @classmethod
    def create(cls, vertex: JobVertexId, subtask_index: int, attempt_number: int) -> ExecutionAttemptId:
        """Return a new attempt id with a fresh random part."""
        return cls(vertex, subtask_index, attempt_number, os.urandom(8).hex())

    def __str__(self) -> str:
        return f"{self.vertex}-{self.subtask_index}-{self.attempt_number}-{self.nonce}"


class ResultPartitionId(msgspec.Struct, frozen=True, order=True, gc=False):
    """The result of one attempt for one data set (the producer's attempt makes it unambiguous)."""

    data_set: IntermediateDataSetId
    producer: ExecutionAttemptId

    def __str__(self) -> str:
        return f"{self.data_set}@{self.producer}"
