"""``ClusterComponents``: the parts of an embedded cluster end together, whatever one of them raises."""

from __future__ import annotations

import asyncio
import threading

import pytest

from engine.clock import SystemClock
from engine.dispatcher.dispatcher import Dispatcher
from engine.errors import EngineError
from engine.gateways.messages import ListJobs
from engine.ids import ResourceId
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.minicluster.cluster_components import ClusterComponents, ClusterSettings
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from engine.rpc.local_gateway import LocalRpcService
from tests.minicluster.fake_tasks import FakeResources

SETTINGS = ClusterSettings(2, 5.0, 20.0, 5.0, JobMasterSettings(10.0, 5.0, 20.0, RESOURCE_MANAGER_ADDRESS))


class Resources(FakeResources):
    """Know whether they were given back."""

    is_closed = False

    def close(self):
        self.is_closed = True


def cluster(faults):
    return ClusterComponents(
        LocalRpcService(), ResourceId.random(), Resources(), SETTINGS, SystemClock(), faults.append
    )


def left_over(before):
    return [thread.name for thread in threading.enumerate() if thread not in before]


def test_components_lead_and_answer_once_they_are_started():
    async def body():
        faults = []
        components = cluster(faults)
        with pytest.raises(EngineError, match="leads"):
            _ = components.dispatcher
        await components.start()
        assert (await components.dispatcher.ask(ListJobs())).jobs == ()
        await components.stop()
        assert faults == [] and components.resources.is_closed

    asyncio.run(body())


def test_everything_ends_when_the_dispatcher_cannot_stop(monkeypatch):
    stop = Dispatcher.stop

    async def stop_and_fail(dispatcher):
        await stop(dispatcher)
        raise OSError("the folder of jobs is gone")

    async def body():
        before = threading.enumerate()
        components = cluster([])
        await components.start()
        with pytest.raises(OSError, match="folder of jobs"):
            await components.stop()
        assert components._rpc._endpoints == {} and components.resources.is_closed
        assert left_over(before) == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    monkeypatch.setattr(Dispatcher, "stop", stop_and_fail)
    asyncio.run(body())


def test_a_cluster_that_cannot_start_can_be_stopped(monkeypatch):
    async def fail(dispatcher):
        raise OSError("no storage")

    async def body():
        before = threading.enumerate()
        components = cluster([])
        with pytest.raises(OSError, match="no storage"):
            await components.start()
        await components.stop()
        assert components._rpc._endpoints == {} and components.resources.is_closed and left_over(before) == []

    monkeypatch.setattr(Dispatcher, "recover", fail)
    asyncio.run(body())
