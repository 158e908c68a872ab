"""An HttpServer with the REST API over Dispatcher, ResourceManager and TaskExecutors of fake tasks, on one loop."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import aiohttp

from engine.config.loader import configuration_from_texts
from engine.dispatcher.dispatcher import DISPATCHER_ADDRESS
from engine.gateways.messages import RequestJobOutcome, SubmitJob
from engine.graph.job_graph import JobGraph
from engine.insight.log_folder import LogFolder
from engine.insight.process_insight import ProcessInsight
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from engine.rest.routes import rest_routes
from engine.rest.services import RestServices
from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.http_server import HttpServer
from tests.dispatcher.test_cluster_components import EPOCH, Cluster

WAIT_S = 30.0


class RestWorld:
    """``get`` and ``send`` speak HTTP; ``cluster`` is behind it."""

    def __init__(self, slots: list[int], settings: dict[str, str] | None = None, logs: LogFolder | None = None) -> None:
        self.cluster = Cluster(slots, heartbeat_s=1.0)
        self.credentials = Credentials(b"s" * 32)
        self.server = HttpServer("127.0.0.1", [0], self.credentials)
        self.is_shut_down = False
        rpc = self.cluster.rpc
        self.services = RestServices(
            lambda: rpc.connect(DISPATCHER_ADDRESS, EPOCH),
            lambda: rpc.connect(RESOURCE_MANAGER_ADDRESS, EPOCH),
            configuration_from_texts(settings or {}),
            logs=logs or LogFolder(None),
            connect=lambda address: rpc.connect(address, 0),
            shut_down=self._shut_down,
        )
        self.insights = [
            ProcessInsight(each.resource_id, self.services.logs, self.cluster.work, each.activities)
            for each in self.cluster.task_executors
        ]
        self.server.add_routes(rest_routes(self.services))

    def _shut_down(self) -> None:
        self.is_shut_down = True

    async def __aenter__(self) -> RestWorld:
        await self.cluster.__aenter__()
        for insight in self.insights:
            self.cluster.rpc.start(insight)
        await self.server.start()
        self.session = aiohttp.ClientSession(f"http://{self.server.address}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()
        await self.server.stop()
        for insight in self.insights:
            await insight.stop()
        await self.cluster.__aexit__()

    async def get(self, path: str, status: int = 200) -> Any:
        """Return the JSON (or text) of a GET whose status is checked."""
        async with self.session.get(path) as response:
            text = await response.text()
            assert response.status == status, f"{path}: {response.status} {text}"
            return json.loads(text) if response.content_type == "application/json" else text

    async def send(self, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
        """Return status and JSON of a signed request."""
        digest = hashlib.sha256(body).hexdigest()
        headers = {AUTHORIZATION: self.credentials.sign(method, path, digest)}
        async with self.session.request(method, path, data=body or None, headers=headers) as response:
            return response.status, json.loads(await response.text() or "null")

    async def submit(self, graph: JobGraph) -> None:
        """Start a job."""
        await self.cluster.gateway.ask(SubmitJob(graph))

    async def run(self, graph: JobGraph) -> str:
        """Run a job to its end and return how that was."""
        await self.submit(graph)
        return (await self.cluster.gateway.ask(RequestJobOutcome(graph.job_id), None)).status


async def until(condition: Any) -> Any:
    """Await ``condition()`` until it returns something true, and return that."""
    async with asyncio.timeout(WAIT_S):
        while not (value := await condition()):
            await asyncio.sleep(0.02)
    return value


def scenario(body: Any, slots: tuple[int, ...] = (2,), **arguments: Any) -> None:
    """Run ``body(world)``; no component may fail in it."""

    async def run() -> None:
        async with RestWorld(list(slots), **arguments) as world:
            await body(world)
            assert world.cluster.faults == []

    asyncio.run(asyncio.wait_for(run(), 2 * WAIT_S))
