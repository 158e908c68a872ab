"""Two services, each with a server of its own, over real sockets; and a caller that makes its frames by hand."""

from __future__ import annotations

import asyncio

from engine.rpc.codec import MessageCodec
from engine.rpc.credentials import Credentials
from engine.rpc.fencing import LeaderFence
from engine.rpc.frames import REPLY, Call, FrameReader, FrameWriter, call_payload, parsed_short
from engine.rpc.greeting import Asked, greet
from engine.rpc.http_server import HttpServer
from engine.rpc.http_service import HttpRpcService
from tests.rpc.served import SECRET, WAIT_S
from tests.rpc.test_local_gateway import TYPES, Counter, Sleep

CODEC = MessageCodec(TYPES)


class Slow(Counter):
    """Notes how its handlers end."""

    def __init__(self, fence) -> None:
        super().__init__(fence)
        self.began = asyncio.Event()
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def sleep(self, request):
        self.began.set()
        try:
            if request.seconds < 0:  # must not stop half-way
                return await self.complete(self._whole(-request.seconds))
            await asyncio.sleep(request.seconds)
        except asyncio.CancelledError:
            if request.seconds > 0:
                self.ended.set_result("cancelled")
            raise
        return await super().sleep(Sleep(0))

    async def _whole(self, seconds):
        await asyncio.sleep(seconds)
        self.ended.set_result("whole")
        return await super().sleep(Sleep(0))


class World:
    """A service with an endpoint, and one that calls it."""

    def __init__(self, fence, caller_secret=SECRET, checks_local=False) -> None:
        self.servers = [HttpServer("127.0.0.1", (0,), Credentials(SECRET)) for _ in range(2)]
        secrets = (Credentials(SECRET), caller_secret and Credentials(caller_secret))
        self.called, self.calling = (
            HttpRpcService(server, CODEC, secret or None, checks_local=checks_local)
            for server, secret in zip(self.servers, secrets, strict=True)
        )
        self.endpoint = Slow(fence)

    def gateway(self, epoch=1):
        return self.calling.connect(self.called.address_of("counter"), epoch)


def run(scenario, fence=None, **arguments):
    async def body():
        world = World(fence or LeaderFence(1), **arguments)
        for server in world.servers:
            await server.start()
        world.called.start(world.endpoint)
        try:
            return await asyncio.wait_for(scenario(world), WAIT_S)
        finally:
            await world.endpoint.stop()
            for service in (world.calling, world.called):
                await service.close()
            for server in world.servers:
                await server.stop()
            await asyncio.sleep(0)
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            if left:
                await asyncio.wait(left, timeout=WAIT_S)
            assert not [task for task in left if not task.done()]

    return asyncio.run(body())


class Hand:
    """A caller that makes its frames by hand."""

    def __init__(self, world, changed=lambda keys: keys) -> None:
        self._world = world
        self._changed = changed
        self._last_id = 0

    async def __aenter__(self):
        authority = f"127.0.0.1:{self._world.servers[0].port}"
        greeted = await greet(Asked(authority, Credentials(SECRET), None, None))
        self.stream, self.replies = greeted.stream, greeted.stream._reader
        keys = self._changed(greeted.keys)
        self.writer, self._reader = FrameWriter(keys[0]), FrameReader(keys[1])
        self._heard = []
        return self

    async def __aexit__(self, *_):
        self.stream.close()

    def call(self, message, epoch=1, timeout_s=None, name="counter"):
        self._last_id += 1
        return call_payload(Call(self._last_id, epoch, timeout_s, name, message, Credentials(SECRET).now_ms()))

    def send(self, payload):
        frame = self.writer.frame(payload)
        self.stream.write(frame)
        return frame

    async def heard(self):
        while not self._heard:
            data = await self.replies.read(65536)
            if not data:
                return None
            self._heard += map(parsed_short, self._reader.feed(data))
        return self._heard.pop(0)

    async def ask(self, message, **arguments):
        self.send(self.call(message, **arguments))
        kind, number, reply = await self.heard()
        assert (kind, number) == (REPLY, self._last_id)
        return reply
