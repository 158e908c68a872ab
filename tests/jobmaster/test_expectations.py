"""What a recovered job expects of its TaskExecutors, and what counts as lost."""

from __future__ import annotations

import pytest

from engine.clock import ManualClock
from engine.gateways.messages import AttachedJob
from engine.graph.deployment import FailureInfo, TaskReport
from engine.ids import AllocationId, ResourceId
from engine.jobmaster.expectations import expectations, losses, why_missing
from engine.jobmaster.slot_pool import AllocatedSlot
from tests.jobmaster.job_graphs import BLOCKING, PIPELINED, Edge, job_graph
from tests.jobmaster.test_job_facts import attempt_of, ended, rebuilt, scheduled

HERE, THERE = ResourceId("a" * 32), ResourceId("b" * 32)


def slot(resource_id):
    return AllocatedSlot(AllocationId.random(), resource_id, f"at {resource_id}", "data", 10)


class Job:
    """Two producers, here and there; the first has finished, the second runs; their reader has not begun."""

    def __init__(self):
        self.graph = job_graph([2, 1], [Edge(0, 1, result_type=BLOCKING)])
        self.first, self.second = attempt_of(self.graph, 0), attempt_of(self.graph, 0, 1)
        self.here, self.there = slot(HERE), slot(THERE)
        self.state = rebuilt(
            self.graph,
            [scheduled(self.first, at=self.here), scheduled(self.second, at=self.there), ended(self.first)],
        )
        self.results = [vertex.partitions[0].id for vertex in self.state.graph.vertices[0].subtasks]

    def answers(self, here=None, there=None):
        whole = {
            HERE: AttachedJob(HERE, (), (TaskReport(self.first, "FINISHED"),), (self.results[0],)),
            THERE: AttachedJob(THERE, (self.there.allocation_id,), (TaskReport(self.second, "RUNNING"),), ()),
        }
        return {**whole, **({HERE: here} if here else {}), **({THERE: there} if there else {})}

    def losses(self, answers):
        expected = expectations(self.state)
        for answer in answers.values():
            for report in answer.reports:
                self.state.graph.update(report, ManualClock())
        return losses(self.state, expected, answers)


def test_running_and_finished_attempts_are_expected_with_what_is_still_read():
    job = Job()
    expected = expectations(job.state)
    assert expected[HERE].attempts == [job.first] and expected[HERE].slots == []
    assert expected[HERE].partitions == [job.results[0]] and expected[HERE].is_needed
    assert expected[THERE].slots == [job.there.allocation_id] and expected[THERE].is_needed
    assert expected[THERE].address == job.there.address


def test_nobody_waits_for_who_holds_nothing_that_is_needed():
    job = Job()
    reader = attempt_of(job.graph, 1)
    for event in (ended(job.second), scheduled(reader, at=job.there), ended(reader)):
        job.state.apply(event)
    expected = expectations(job.state)
    assert not expected[HERE].is_needed and not expected[THERE].is_needed
    assert expected[HERE].partitions == [] and expected[HERE].attempts == [job.first]


def test_what_a_running_reader_takes_from_a_finished_pipelined_producer_is_kept():
    graph = job_graph([1, 1], [Edge(0, 1, result_type=PIPELINED)])
    producer, reader = attempt_of(graph, 0), attempt_of(graph, 1)
    state = rebuilt(graph, [scheduled(producer, reader, at=slot(HERE)), ended(producer)])
    (producer_vertex,) = state.graph.vertices[0].subtasks
    assert expectations(state)[HERE].partitions == [producer_vertex.partitions[0].id]


def test_nothing_is_lost_when_all_is_there():
    job = Job()
    lost = job.losses(job.answers())
    assert (lost.task_executors, lost.attempts, lost.results) == ([], [], [])


def test_who_has_not_answered_is_lost():
    job = Job()
    assert job.losses({THERE: job.answers()[THERE]}).task_executors == [HERE]


def test_an_attempt_whose_slot_is_gone_is_lost():
    job = Job()
    lost = job.losses(job.answers(there=AttachedJob(THERE, (), (), ())))
    assert [vertex.current.attempt for vertex in lost.attempts] == [job.second]
    assert "it is missing after a fail-over" in why_missing(lost.attempts[0]).message


def test_a_finished_attempt_whose_result_is_gone_is_lost():
    job = Job()
    lost = job.losses(job.answers(here=AttachedJob(HERE, (), (TaskReport(job.first, "FINISHED"),), ())))
    assert [vertex.current.attempt for vertex in lost.results] == [job.first]
    assert lost.results[0].partitions[0].is_damaged
    assert "a result of it is missing" in why_missing(lost.results[0]).message


def test_what_finished_after_its_task_executor_had_answered_is_not_lost():
    job = Job()
    answers = job.answers()
    expected = expectations(job.state)
    for report in (*answers[THERE].reports, TaskReport(job.second, "FINISHED")):
        job.state.graph.update(report, ManualClock())
    lost = losses(job.state, expected, answers)
    assert (lost.task_executors, lost.attempts, lost.results) == ([], [], [])


@pytest.mark.parametrize("state", ["FAILED", "CANCELED"])
def test_why_an_attempt_runs_again_is_its_own_failure_where_it_has_one(state):
    graph = job_graph([1])
    attempt = attempt_of(graph, 0)
    own = FailureInfo("ResourceError", "a disk", retryable=True)
    (vertex,) = rebuilt(graph, [scheduled(attempt, at=slot(HERE)), ended(attempt, state, failure=own)]).graph
    assert why_missing(vertex) == own
    (vertex,) = rebuilt(graph, [scheduled(attempt, at=slot(HERE)), ended(attempt, state)]).graph
    assert why_missing(vertex).retryable
