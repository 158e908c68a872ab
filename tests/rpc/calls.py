"""Two services, each with a server of its own, over real sockets; and callers that make frames and requests by hand.

There are two ways of a call: frames of a kept connection, and a request for each, to a server that knows no frames.
"""

from __future__ import annotations

import asyncio
import hashlib

import aiohttp

from engine.rpc.called_requests import DEADLINE_HEADER
from engine.rpc.codec import MessageCodec
from engine.rpc.credentials import AUTHORIZATION, SEAL_BYTES, Credentials
from engine.rpc.fencing import LeaderFence
from engine.rpc.frames import REPLY, Call, FrameReader, FrameWriter, call_payload, parsed_short
from engine.rpc.greeting import PATH, Asked, greet
from engine.rpc.http_server import EPOCH_HEADER, HttpServer
from engine.rpc.http_service import HttpRpcService
from tests.rpc.served import SECRET, WAIT_S
from tests.rpc.test_local_gateway import TYPES, Counter, Sleep

CODEC = MessageCodec(TYPES)
#: mark of credentials: those of the cluster
OWN = object()


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


def without_frames(server):
    """Return a server that has not started, as it is in a program that knows no frames."""
    server._routes = [route for route in server._routes if route.path != PATH]
    return server


class World:
    """A service with an endpoint, and one that calls it.

    ``called``, ``calling``: what they prove themselves with.
    """

    def __init__(self, fence, called=OWN, calling=OWN, checks_local=False, way="frames") -> None:
        self.way = way
        self.servers = [HttpServer("127.0.0.1", (0,), Credentials(SECRET)) for _ in range(2)]
        self.called, self.calling = (
            HttpRpcService(server, CODEC, Credentials(SECRET) if own is OWN else own, checks_local=checks_local)
            for server, own in zip(self.servers, (called, calling), strict=True)
        )
        if way == "requests":
            without_frames(self.servers[0])
        self.endpoint = Slow(fence)

    @property
    def authority(self):
        return f"127.0.0.1:{self.servers[0].port}"

    def by_hand(self):
        """Return a caller that makes everything by hand."""
        return Hand(self) if self.way == "frames" else Post(self)

    async def again(self, way):
        """Return a started server, in place of the one that is called, of a program that knows this way."""
        port = self.servers[0].port
        await self.servers[0].stop()
        self.servers[0] = HttpServer("127.0.0.1", (port,), Credentials(SECRET))
        HttpRpcService(self.servers[0], CODEC, Credentials(SECRET)).start(self.endpoint)
        if way == "requests":
            without_frames(self.servers[0])
        await self.servers[0].start()

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
        greeted = await greet(Asked(self._world.authority, Credentials(SECRET), None, None))
        self.stream, self.replies = greeted.stream, greeted.stream._reader
        self.keys = self._changed(greeted.keys)
        self.writer, self._reader = FrameWriter(self.keys[0]), FrameReader(self.keys[1])
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


class Post:
    """A caller that makes its requests by hand."""

    def __init__(self, world) -> None:
        self._world = world

    async def __aenter__(self):
        self._session = await aiohttp.ClientSession().__aenter__()
        return self

    async def __aexit__(self, *_):
        await self._session.close()

    async def send(self, message, epoch="1", signed_epoch=None, deadline=None):
        """Send a request; return status and body of its answer."""
        target, digest = "/rpc/counter", hashlib.sha256(message).hexdigest()
        signature = Credentials(SECRET).sign("POST", target, digest, epoch if signed_epoch is None else signed_epoch)
        headers = {EPOCH_HEADER: epoch, AUTHORIZATION: signature}
        if deadline is not None:
            headers[DEADLINE_HEADER] = deadline
        url = f"http://{self._world.authority}{target}"
        async with self._session.post(url, data=message, headers=headers) as answer:
            return answer.status, await answer.read()

    async def ask(self, message, epoch=1, timeout_s=None):
        deadline = None if timeout_s is None else str(int(timeout_s * 1000))
        status, reply = await self.send(message, str(epoch), deadline=deadline)
        assert status == 200
        return reply[:-SEAL_BYTES]
