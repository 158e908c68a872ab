"""A task whose submission was not answered may run all the same: its next attempt must not begin beside it."""

from __future__ import annotations

import asyncio
import threading

from engine.gateways.messages import SubmitTasks
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.jobmaster.restart_strategy import FixedDelayRestart
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from engine.rpc.errors import RpcTimeoutError
from tests.dispatcher.test_cluster_components import Cluster, RecordingRpc
from tests.jobmaster.job_graphs import job_graph


class DeafRpc(RecordingRpc):
    """Delivers the first task, and loses the answer; ``is_answered`` when another one has arrived."""

    is_lost = False
    is_answered = threading.Event()

    async def deliver(self, address, epoch, message):
        reply = await super().deliver(address, epoch, message)
        if isinstance(message, SubmitTasks):
            if not self.is_lost:
                self.is_lost = True
                raise RpcTimeoutError("no answer within 10 s")
            self.is_answered.set()
        return reply


class RestartingCluster(Cluster):
    def settings(self):
        return JobMasterSettings(
            20.0, 10.0, 40.0, RESOURCE_MANAGER_ADDRESS, restart_strategy=lambda _: FixedDelayRestart(3, 0.01)
        )


def test_an_attempt_whose_submission_timed_out_has_ended_before_the_next_one_begins():
    lock, running, most = threading.Lock(), [0], [0]

    def body(task):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        if task.descriptor.attempt.attempt_number == 0:
            assert DeafRpc.is_answered.wait(60), "nobody sends the task again"
        with lock:
            running[0] -= 1

    async def run():
        cluster = RestartingCluster([1], heartbeat_s=10)
        cluster.rpc.__class__ = DeafRpc
        async with cluster:
            cluster.resources[0].bodies["one"] = body
            outcome = await cluster.run(job_graph([1], names=["one"]))
            assert outcome.status == "FINISHED"
            assert cluster.rpc.is_lost
            assert most[0] == 1

    asyncio.run(asyncio.wait_for(run(), 100))
