"""``LeadingComponents``: what one leadership runs, and its end."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.blob.blob_server import BlobServer
from engine.blob.blob_store import BlobStore
from engine.clock import SystemClock
from engine.config.loader import configuration_from_texts
from engine.dispatcher.dispatcher import DISPATCHER_ADDRESS, Dispatcher
from engine.dispatcher.leading_components import LeadingComponents
from engine.entrypoint.leading_stores import leading_settings, leading_stores
from engine.entrypoint.storage_places import StoragePlaces
from engine.gateways.messages import MESSAGE_TYPES
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from engine.rpc.codec import MessageCodec
from engine.rpc.leadership import Leadership
from engine.rpc.local_gateway import LocalRpcService
from ha.services import create_ha_services


def leading(tmp_path, rpc, blocking_work):
    services = create_ha_services("embedded")
    configuration = configuration_from_texts({})
    places = StoragePlaces(str(tmp_path / "own"), str(tmp_path / "history"), is_durable=False)
    leadership = Leadership(rpc, 1, SystemClock(), blocking_work, lambda: True, lambda error: None)
    blobs = BlobServer(BlobStore(tmp_path / "blobs"), 1000)
    stores = leading_stores(configuration, places, services.state_store(), leadership, blobs)
    return LeadingComponents(leadership, leading_settings(configuration, rpc), stores)


def test_all_stop_and_nobody_is_reached_any_more_when_the_first_cannot_stop(tmp_path, monkeypatch):
    stop = Dispatcher.stop

    async def stop_and_fail(dispatcher):
        await stop(dispatcher)
        raise OSError("the folder of jobs is gone")

    async def lead_and_stop():
        rpc = LocalRpcService(MessageCodec(MESSAGE_TYPES))
        with ThreadPoolExecutor(max_workers=2) as blocking_work:
            components = leading(tmp_path, rpc, blocking_work)
            await components.start()
            assert set(rpc._endpoints) == {RESOURCE_MANAGER_ADDRESS, DISPATCHER_ADDRESS}
            running = asyncio.all_tasks() - {asyncio.current_task()}
            assert running, "the ResourceManager and the Dispatcher have work of their own"
            with pytest.raises(OSError, match="folder of jobs"):
                await components.stop()
        assert rpc._endpoints == {}
        assert [task for task in running if not task.done()] == []

    monkeypatch.setattr(Dispatcher, "stop", stop_and_fail)
    asyncio.run(lead_and_stop())
