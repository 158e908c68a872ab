"""A machine whose clock jumps takes no messages, and its own are refused: it counts as lost, and jobs go on."""

from __future__ import annotations

import asyncio

import pytest

from engine.errors import VersionMismatchError
from engine.gateways.messages import RequestSlotOverview, SubmitTasks, UpdateTaskStates
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.jobmaster.restart_strategy import FixedDelayRestart
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from engine.rpc.errors import AccessDeniedError
from tests.dispatcher.test_cluster_components import EPOCH, Cluster, RecordingRpc
from tests.jobmaster.job_graphs import job_graph

#: nobody is lost for being silent
NEVER_S = 600.0
JUMPED = AccessDeniedError("tm-7:6122 refuses SubmitTasks of jm-1: the request's credential is 300 s old by its clock")


class JumpingRpc(RecordingRpc):
    """One TaskExecutor refuses all from its first task on; ``refused_count`` reports are refused, and then taken."""

    refusing = ""
    refusal: Exception = JUMPED
    jumps = False
    refused_count = 0

    async def deliver(self, address, epoch, message):
        if self.jumps and isinstance(message, SubmitTasks) and not self.refusing:
            self.refusing = address
        if address == self.refusing:
            raise self.refusal
        if isinstance(message, UpdateTaskStates) and self.refused_count:
            self.refused_count -= 1
            raise self.refusal
        return await super().deliver(address, epoch, message)


class JumpingCluster(Cluster):
    def __init__(self, slots):
        super().__init__(slots, heartbeat_s=NEVER_S)
        self.rpc.__class__ = JumpingRpc

    def settings(self):
        return JobMasterSettings(
            20.0, NEVER_S, 4 * NEVER_S, RESOURCE_MANAGER_ADDRESS, restart_strategy=lambda _: FixedDelayRestart(3, 0.01)
        )


def run(slots, body):
    async def scenario():
        async with JumpingCluster(slots) as cluster:
            await body(cluster)
            assert cluster.faults == []
            cluster.rpc.refusing = ""

    asyncio.run(asyncio.wait_for(scenario(), 100))


@pytest.mark.parametrize("refusal", [JUMPED, VersionMismatchError("the TaskManager on tm-7 has Drey 9.9.9")])
def test_jobs_go_on_where_the_clocks_are_right(refusal):
    async def body(cluster):
        cluster.rpc.jumps, cluster.rpc.refusal = True, refusal
        for _ in range(2):
            outcome = await cluster.run(job_graph([2], names=["one"]))
            assert outcome.status == "FINISHED"
        assert cluster.rpc.refusing
        overview = await cluster.rpc.connect(RESOURCE_MANAGER_ADDRESS, EPOCH).ask(RequestSlotOverview())
        assert (overview.task_executor_count, overview.total_count) == (1, 2), "the other one is lost, for all jobs"

    run([2, 2], body)


def test_a_report_that_is_refused_for_a_moment_comes_later():
    async def body(cluster):
        cluster.rpc.refused_count = 3
        assert (await cluster.run(job_graph([1], names=["one"]))).status == "FINISHED"
        assert cluster.rpc.refused_count == 0

    run([1], body)
