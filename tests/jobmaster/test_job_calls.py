"""JobCalls: results that were read are released with the next tasks, or a moment later."""

from __future__ import annotations

import asyncio

from engine.gateways.messages import ReleaseJob, ReleasePartitions, SubmitTasks, SubmitTasksReply
from engine.graph.deployment import Staging
from engine.ids import (
    AllocationId,
    ExecutionAttemptId,
    IntermediateDataSetId,
    JobId,
    JobVertexId,
    ResourceId,
    ResultPartitionId,
)
from engine.jobmaster import job_calls
from engine.jobmaster.deployment import build_descriptor
from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.execution_vertex import AllocatedSlot
from engine.jobmaster.job_calls import JobCalls
from engine.jobmaster.job_instruction import Deploy
from engine.rpc.errors import RpcTimeoutError
from engine.rpc.request import ACKNOWLEDGE
from tests.jobmaster.job_graphs import job_graph

ATTEMPT = ExecutionAttemptId.create(JobVertexId(0), 0, 0)
FIRST, SECOND, THIRD = (ResultPartitionId(IntermediateDataSetId(ATTEMPT.vertex, index), ATTEMPT) for index in range(3))


class Peer:
    """An RpcService that notes what the TaskExecutors are told."""

    def __init__(self):
        self.told = []
        self.address = ""
        #: submissions whose answer is lost
        self.losses = 0

    def connect(self, address, epoch):
        self.address = address
        return self

    async def ask(self, request, timeout_s=None):
        if isinstance(request, SubmitTasks):
            self.told.append((self.address, "tasks", request.released))
            if self.losses:
                self.losses -= 1
                raise RpcTimeoutError("no answer")
            return SubmitTasksReply()
        if isinstance(request, ReleasePartitions):
            self.told.append((self.address, "release", request.partitions))
        elif isinstance(request, ReleaseJob):
            self.told.append((self.address, "job", ()))
        return ACKNOWLEDGE


def tasks(address):
    graph = job_graph([1])
    vertex = next(iter(build_execution_graph(graph)))
    vertex.current.slot = AllocatedSlot(AllocationId.random(), ResourceId.random(), address, "", 100)
    return Deploy(address, SubmitTasks((build_descriptor(vertex, graph, [vertex], {0: Staging("/s")}),), "master"))


def told(body, losses=0):
    peer = Peer()
    peer.losses = losses
    asyncio.run(body(JobCalls(peer, 1, "resourcemanager")))
    return peer.told


def release(calls, address, *partitions):
    return asyncio.ensure_future(calls.release(address, partitions))


def released_before(*, wanted):
    """Tasks for a TaskExecutor that are still wanted, or not, when they are sent: results of it wait to be released."""

    async def body(calls):
        waiting = release(calls, "a", FIRST)
        await asyncio.sleep(0)
        await calls.deploy(tasks("a"), lambda _: wanted)
        await waiting

    return body


def test_results_are_released_with_the_next_tasks_of_their_task_executor(monkeypatch):
    monkeypatch.setattr(job_calls, "RELEASE_S", 0.05)

    async def body(calls):
        waiting = [release(calls, "a", FIRST), release(calls, "a", SECOND), release(calls, "b", THIRD)]
        await asyncio.sleep(0)
        await calls.deploy(tasks("a"), lambda _: True)
        await asyncio.gather(*waiting)

    assert told(body) == [("a", "tasks", (FIRST, SECOND)), ("b", "release", (THIRD,))]


def test_results_are_released_a_moment_later_where_no_task_follows(monkeypatch):
    monkeypatch.setattr(job_calls, "RELEASE_S", 0.01)

    async def body(calls):
        await asyncio.gather(release(calls, "a", FIRST), release(calls, "a", SECOND))
        await release(calls, "a", THIRD)

    assert told(body) == [("a", "release", (FIRST, SECOND)), ("a", "release", (THIRD,))]


def test_tasks_that_are_sent_again_release_again(monkeypatch):
    monkeypatch.setattr(job_calls, "RELEASE_S", 0.01)
    assert told(released_before(wanted=True), losses=1) == [("a", "tasks", (FIRST,))] * 2


def test_tasks_that_need_not_run_any_more_leave_results_to_be_released(monkeypatch):
    monkeypatch.setattr(job_calls, "RELEASE_S", 0.01)
    assert told(released_before(wanted=False)) == [("a", "release", (FIRST,))]


def test_a_job_that_is_given_back_releases_nothing_apart(monkeypatch):
    async def body(calls):
        waiting = release(calls, "a", FIRST)
        await asyncio.sleep(0)
        await calls.give_back(JobId.random(), ["a"])
        await waiting

    monkeypatch.setattr(job_calls, "RELEASE_S", 0.01)
    assert told(body) == [("a", "job", ())]
