"""A result that could not be read: which hosts are told, who is avoided, by what is known of the job."""

from __future__ import annotations

import pytest

from engine.clock import ManualClock
from engine.graph.deployment import FailureInfo
from engine.ids import AllocationId, ExecutionAttemptId, ResourceId, ResultPartitionId
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_links import JobLinks
from engine.jobmaster.restart_strategy import NoRestart
from engine.jobmaster.slot_pool import AllocatedSlot
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph

A, B = ResourceId("a" * 32), ResourceId("b" * 32)


def slot_on(resource_id, address):
    return AllocatedSlot(AllocationId.random(), resource_id, address, f"data of {address}", 100)


class Job:
    """Two subtasks that have stored a result each, on two TaskManagers, and two that read both."""

    def __init__(self, first_bytes, second_bytes):
        graph = job_graph([2, 2], [Edge(0, 1, result_type=BLOCKING)])
        self.facts = JobFacts(graph, NoRestart(), ManualClock())
        self.links = JobLinks(self.facts)
        self.slots = slot_on(A, "10.0.0.7:6122/taskexecutor-a"), slot_on(B, "tm-b.example:6122/taskexecutor-b")
        self.producers, self.readers = (vertex.subtasks for vertex in self.facts.graph.vertices)
        for vertex, slot, size in zip(self.producers, self.slots, (first_bytes, second_bytes), strict=True):
            vertex.current.slot, vertex.current.state = slot, ExecutionState.FINISHED
            vertex.current.partition_bytes = (size,)
        for vertex, slot in zip(self.readers, self.slots, strict=True):
            vertex.current.slot, vertex.current.state = slot, ExecutionState.RUNNING

    def fails(self, reader=0, partition=None):
        """Have a reader find the result of the other TaskManager out of reach; return what is told."""
        partition = partition or self.producers[1 - reader].partitions[0].id
        failure = FailureInfo("PartitionConnectionError", "no answer", retryable=True, partition=partition)
        return self.links.why_failed(failure, self.slots[reader])

    def attempts(self, count, answering=(A, B)):
        for _ in range(count):
            self.fails()
            for resource_id in answering:
                self.links.answered(resource_id)
            self.links.next_attempts()

    def left(self):
        return [resource_id for resource_id, _ in self.links.to_leave()]


def test_both_hosts_are_told():
    failure = Job(1, 1).fails()
    assert failure.message == (
        f"TaskManager {A} on 10.0.0.7 cannot read from TaskManager {B} on tm-b.example: no answer"
    )
    assert failure.retryable and failure.type_name == "PartitionConnectionError"


def test_what_nobody_holds_any_more_or_is_here_is_told_as_it_came():
    job = Job(1, 1)
    gone = job.producers[1].partitions[0].id
    other = ExecutionAttemptId.create(gone.producer.vertex, gone.producer.subtask_index, 7)
    assert job.fails(partition=ResultPartitionId(gone.data_set, other)).message == "no answer"
    assert job.fails(partition=job.producers[0].partitions[0].id).message == "no answer"
    assert job.links.why_failed(FailureInfo("PartitionConnectionError", "odd"), job.slots[0]).message == "odd"
    job.attempts(0)
    assert job.left() == []


@pytest.mark.parametrize(("first_bytes", "second_bytes", "left"), [(1, 2, A), (2, 1, B)])
def test_who_holds_less_of_the_jobs_data_is_left(first_bytes, second_bytes, left):
    job = Job(first_bytes, second_bytes)
    job.attempts(1)
    assert job.left() == [] and job.facts.pool.avoided == frozenset()
    job.attempts(1)
    ((found, failure),) = job.links.to_leave()
    assert found == left and job.facts.pool.avoided == {left} and job.left() == []
    assert f"the job goes on without TaskManager {left}" in failure.message and failure.retryable


def test_results_that_are_read_or_not_made_do_not_count():
    job = Job(1, 100)
    job.producers[1].current.state = ExecutionState.FAILED
    job.attempts(2)
    assert job.left() == [B]
    job = Job(1, 100)
    job.producers[1].partitions[0].is_released = True  # as when all that read it have finished
    job.attempts(2)
    assert job.left() == [B]


def test_who_does_not_answer_is_left_whatever_it_holds():
    job = Job(1, 100)
    job.attempts(2, answering=(A,))
    assert job.left() == [B]


def test_who_is_gone_is_avoided_no_more():
    job = Job(1, 2)
    job.attempts(2)
    job.links.lost(A)
    assert job.facts.pool.avoided == frozenset()


def test_the_last_attempt_ends_the_job():
    job = Job(1, 2)
    job.attempts(3)
    failure = job.fails()
    assert not failure.retryable and failure.type_name == "ResourceError"
    assert "10.0.0.7" in failure.message and "tm-b.example" in failure.message and "too few slots" in failure.message
