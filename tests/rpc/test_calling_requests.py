"""Calls as requests: to a server that knows no frames, and of a caller that knows none; and when they end."""

from __future__ import annotations

import asyncio
import logging
import random

import pytest

from engine.errors import FencedError
from engine.rpc import called_requests, calling_connection, calling_requests
from engine.rpc.called_requests import DEADLINE_HEADER
from engine.rpc.credentials import Credentials
from engine.rpc.errors import AccessDeniedError, EndpointUnreachableError, RemoteCallError
from engine.rpc.fencing import FollowerFence
from engine.rpc.http_messages import RefusedAnswerError
from engine.rpc.http_server import HttpServer
from tests.rpc.calls import CODEC, Post, run
from tests.rpc.served import SECRET, WAIT_S
from tests.rpc.test_local_gateway import Add

ways = pytest.mark.parametrize("way", ["frames", "requests"])


# ---- requests ----


@ways
def test_a_caller_that_knows_no_frames_is_answered(way):
    async def scenario(world):
        async with Post(world) as post:
            assert CODEC.decode(await post.ask(CODEC.encode(Add([1])))).numbers == [1]
        assert (await world.gateway().ask(Add([2]))).numbers == [1, 2]

    run(scenario, way=way)


@pytest.mark.parametrize(("epoch", "deadline"), [("x", None), ("", None), ("1", "soon"), ("1" * 5000, None)])
def test_headers_that_are_no_numbers_are_refused(epoch, deadline):
    async def scenario(world):
        async with Post(world) as post:
            assert (await post.send(CODEC.encode(Add([1])), epoch, deadline=deadline))[0] == 400
        assert world.endpoint.numbers == []

    run(scenario)


def test_a_follower_obeys_the_highest_epoch_and_none_that_is_not_signed_raises_it():
    async def scenario(world):
        await world.gateway(3).ask(Add([3]))
        async with Post(world) as post:
            assert (await post.send(CODEC.encode(Add([9])), epoch="9", signed_epoch="3"))[0] == 401
        await world.gateway(3).ask(Add([3]))
        await world.gateway(5).ask(Add([5]))
        with pytest.raises(FencedError):
            await world.gateway(4).ask(Add([4]))
        assert world.endpoint.numbers == [3, 3, 5]

    run(scenario, fence=FollowerFence(), way="requests")


def test_a_message_beyond_the_limit_of_the_called_side_is_refused(monkeypatch):
    monkeypatch.setattr(called_requests, "MESSAGE_LIMIT", 1000)

    async def scenario(world):
        with pytest.raises(RemoteCallError, match="413"):
            await world.gateway().ask(Add(list(range(10_000))))
        await world.gateway().ask(Add([1]))

    run(scenario, way="requests")


def test_a_server_that_takes_no_calls_at_all_is_told_by_its_answer():
    async def scenario(world):
        other = HttpServer("127.0.0.1", (0,), Credentials(SECRET))
        await other.start()
        try:
            with pytest.raises(RemoteCallError, match="answers Add with 404: Not Found: POST /rpc/counter"):
                await world.calling.connect(f"127.0.0.1:{other.port}/counter", 1).ask(Add([1]))
        finally:
            await other.stop()

    run(scenario)


# ---- when they are made ----


def test_a_connection_is_tried_once_in_a_while_to_a_server_that_knows_none(caplog):
    caplog.set_level(logging.INFO, "engine.rpc.http_server")

    def tried():
        return sum(text.startswith("POST /rpc from") for text in caplog.messages)

    async def scenario(world):
        for number in range(5):
            await world.gateway().ask(Add([number]))
        assert tried() == 1 and not world.calling._connections
        world.calling._requests._processes[world.authority].forget()
        for number in range(5, 10):
            await world.gateway().ask(Add([number]))
        assert tried() == 2
        assert world.endpoint.numbers == list(range(10))

    run(scenario, way="requests")


@ways
@pytest.mark.parametrize("known_s", [0.0, 0.001, 3600.0])
def test_calls_start_in_their_order_whenever_their_way_changes(way, known_s, monkeypatch):
    monkeypatch.setattr(calling_requests, "_KNOWN_S", known_s)

    async def scenario(world):
        random_, asked = random.Random(7), []
        for number in range(400):
            asked.append(asyncio.ensure_future(world.gateway().ask(Add([number]))))
            for _ in range(random_.randrange(3)):
                await asyncio.sleep(0)
            if random_.random() < 0.1:
                await asyncio.sleep(random_.random() / 100)
            if not world.calling._connections and random_.random() < 0.3:
                world.calling._requests.note(world.authority)
        await asyncio.gather(*asked)
        assert world.endpoint.numbers == list(range(400))

    run(scenario, way=way)


def test_a_call_that_is_made_while_others_hear_that_there_are_no_frames_starts_behind_them(monkeypatch):
    async def scenario(world):
        def ask(number):
            asked.append(asyncio.ensure_future(world.gateway().ask(Add([number]))))

        async def greet(asked):
            await asyncio.sleep(0.05)
            world.calling._requests.note(world.authority)  # as a call before has done
            ask(3)
            raise RefusedAnswerError(404, b"")

        asked = []
        monkeypatch.setattr(calling_connection, "greet", greet)
        for number in range(3):
            ask(number)
        await asked[0]
        await asyncio.gather(*asked)
        assert world.endpoint.numbers == [0, 1, 2, 3]

    run(scenario, way="requests")


@pytest.mark.parametrize("known_s", [0.2, 3600.0])
def test_a_server_that_is_replaced_by_one_that_knows_frames_soon_gets_frames(known_s, monkeypatch):
    monkeypatch.setattr(calling_requests, "_KNOWN_S", known_s)

    async def scenario(world):
        gateway = world.gateway()
        await gateway.ask(Add([0]))
        assert not world.calling._connections
        if known_s > WAIT_S:  # a call finds that the process is gone
            await world.servers[0].stop()
            with pytest.raises(EndpointUnreachableError):
                await gateway.ask(Add([0]))
        await world.again("frames")
        count = 1
        while not world.calling._connections:
            await gateway.ask(Add([count]))
            count += 1
            assert known_s < WAIT_S or world.calling._connections
            await asyncio.sleep(0.05)
        assert world.endpoint.numbers == list(range(count))

    run(scenario, way="requests")


def test_a_server_that_is_replaced_by_one_that_knows_no_frames_gets_requests():
    async def scenario(world):
        gateway = world.gateway()
        await gateway.ask(Add([1]))
        assert world.calling._connections
        await world.again("requests")
        await gateway.ask(Add([2]))
        assert not world.calling._connections
        assert world.endpoint.numbers == [1, 2]

    run(scenario)


class Impostor:
    """A server without the secret: it knows no frames, and has an answer to every request, or none."""

    def __init__(self, answer=None) -> None:
        self._answer = answer
        self.seen = asyncio.get_running_loop().create_future()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.authority = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def _connected(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if head.startswith("POST /rpc "):
            await asyncio.sleep(0.2)
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        else:
            lines = (line.partition(": ") for line in head.splitlines()[1:])
            self.seen.set_result({name: value for name, _, value in lines})
            if self._answer is None:
                await reader.read()
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self._answer) + self._answer)
        await writer.drain()
        writer.close()


def test_a_forged_answer_that_there_are_no_frames_lets_nobody_speak_for_the_process():
    async def scenario(world):
        reply = CODEC.encode(await world.gateway().ask(Add([1])))
        async with Impostor(reply + bytes(32)) as impostor:
            with pytest.raises(AccessDeniedError, match="does not come from a process with the cluster's secret"):
                await world.calling.connect(f"{impostor.authority}/counter", 1).ask(Add([2]))

    run(scenario)


def test_a_call_has_one_deadline_also_when_its_way_changes():
    async def scenario(world):
        async with Impostor() as impostor:
            gateway = world.calling.connect(f"{impostor.authority}/counter", 1)
            call = asyncio.ensure_future(gateway.ask(Add([1]), timeout_s=30.0))
            assert int((await impostor.seen)[DEADLINE_HEADER]) <= 29_800
            call.cancel()

    run(scenario)
