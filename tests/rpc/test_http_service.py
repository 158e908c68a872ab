"""Calls between two services, each with a server of its own, over real sockets."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import re
import socket
import threading
import time

import aiohttp
import psutil
import pytest

from engine.clock import ManualClock
from engine.errors import FencedError, IllegalTransitionError, JobNotFoundError
from engine.rpc import http_service
from engine.rpc.codec import MessageCodec
from engine.rpc.credentials import AUTHORIZATION, SEAL_BYTES, Credentials
from engine.rpc.errors import (
    AccessDeniedError,
    EndpointUnreachableError,
    MessageCodecError,
    RemoteCallError,
    RpcTimeoutError,
    UntrustedReplyError,
)
from engine.rpc.fencing import FollowerFence, LeaderFence
from engine.rpc.http_server import EPOCH_HEADER, HttpServer
from engine.rpc.http_service import HttpRpcService
from tests.rpc.served import SECRET, WAIT_S
from tests.rpc.test_local_gateway import TYPES, Add, Break, Carry, Counter, Sleep

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


def test_a_call_is_answered_over_the_network():
    async def scenario(world):
        assert (await world.gateway().ask(Add([1, 2]))).numbers == [1, 2]
        assert world.called.address_of("x") == f"127.0.0.1:{world.servers[0].port}/x"
        assert world.gateway().address == world.called.address_of("counter")

    run(scenario)


def test_calls_to_one_address_start_in_the_order_they_were_made():
    async def scenario(world):
        held = asyncio.ensure_future(world.gateway().ask(Sleep(WAIT_S)))
        await world.endpoint.began.wait()
        gateways = [world.gateway() for _ in range(100)]
        await asyncio.gather(*(gateway.ask(Add([number])) for number, gateway in enumerate(gateways)))
        assert world.endpoint.numbers == list(range(100))
        assert not held.done()
        held.cancel()

    run(scenario)


def test_a_call_to_an_endpoint_of_the_same_process_takes_the_short_way():
    async def scenario(world):
        for address in ("counter", world.called.address_of("counter")):
            await world.called.connect(address, 1).ask(Add([1]))
        assert world.called._session is None
        assert world.endpoint.numbers == [1, 1]

    run(scenario)


@pytest.mark.parametrize("checks_local", [True, False])
def test_the_short_way_passes_the_codec_when_it_is_asked_to(checks_local):
    lock = threading.Lock()

    async def scenario(world):
        gateway = world.called.connect("counter", 1)
        if checks_local:
            with pytest.raises(MessageCodecError):
                await gateway.ask(Carry(lock))
        else:
            await gateway.ask(Carry(lock))
            assert world.endpoint.cargo is lock
        with pytest.raises(MessageCodecError):
            await world.gateway().ask(Carry(lock))

    run(scenario, checks_local=checks_local)


def test_errors_travel_as_they_do_within_a_process():
    async def scenario(world):
        gateway = world.gateway()
        with pytest.raises(JobNotFoundError, match="no job"):
            await gateway.ask(Break("engine"))
        with pytest.raises(IllegalTransitionError):
            await gateway.ask(Break("state"))
        with pytest.raises(RemoteCallError, match="KeyError"):
            await gateway.ask(Break("other"))
        assert [type(fault) for fault in world.endpoint.faults] == [IllegalTransitionError, KeyError]

    run(scenario)


def test_another_epoch_is_refused_before_the_message_is_decoded():
    async def scenario(world):
        for epoch in (0, 2):
            with pytest.raises(FencedError) as fenced:
                await world.gateway(epoch).ask(Add([7]))
            assert (fenced.value.expected, fenced.value.received) == (1, epoch)
        # Even bytes that are no message: the epoch is what is wrong first.
        status, answer = await post(world, b"\xff", epoch="2")
        assert status == 200 and isinstance(CODEC.decode_error(answer), FencedError)
        status, answer = await post(world, b"\xff", epoch="1")
        assert isinstance(CODEC.decode_error(answer), MessageCodecError)
        assert world.endpoint.numbers == []

    run(scenario)


def test_a_follower_obeys_the_highest_epoch_and_no_unsigned_one_raises_it():
    async def scenario(world):
        await world.gateway(3).ask(Add([3]))
        status, _ = await post(world, CODEC.encode(Add([9])), epoch="9", signed_epoch="3")
        assert status == 401
        await world.gateway(3).ask(Add([3]))
        await world.gateway(5).ask(Add([5]))
        with pytest.raises(FencedError):
            await world.gateway(4).ask(Add([4]))
        assert world.endpoint.numbers == [3, 3, 5]

    run(scenario, fence=FollowerFence())


async def post(world, body, epoch, signed_epoch=None, deadline=None):
    """Send a call by hand; return status and body of its answer."""
    target = "/rpc/counter"
    digest = hashlib.sha256(body).hexdigest()
    signature = Credentials(SECRET).sign("POST", target, digest, epoch if signed_epoch is None else signed_epoch)
    headers = {EPOCH_HEADER: epoch, AUTHORIZATION: signature}
    if deadline is not None:
        headers["X-Drey-Deadline-Ms"] = deadline
    url = f"http://127.0.0.1:{world.servers[0].port}{target}"
    async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as response:
        return response.status, (await response.read())[:-SEAL_BYTES]


@pytest.mark.parametrize(("epoch", "deadline"), [("x", None), ("", None), ("1", "soon"), ("1" * 5000, None)])
def test_headers_that_are_no_numbers_are_refused(epoch, deadline):
    async def scenario(world):
        assert (await post(world, CODEC.encode(Add([1])), epoch, deadline=deadline))[0] == 400
        assert world.endpoint.numbers == []

    run(scenario)


def test_a_deadline_ends_the_waiting_and_the_handler():
    async def scenario(world):
        for timeout_s in (0.1, 1.5, 12.5):  # where everything is slow a deadline may end before the call arrives
            with pytest.raises(RpcTimeoutError, match=re.escape(f"did not answer Sleep within {timeout_s} s")):
                await world.gateway().ask(Sleep(WAIT_S), timeout_s=timeout_s)
            if world.endpoint.began.is_set():
                break
        assert await world.endpoint.ended == "cancelled"
        await world.gateway().ask(Add([1]))

    run(scenario)


def test_the_called_side_keeps_the_deadline_by_itself():
    async def scenario(world):
        status, answer = await post(world, CODEC.encode(Sleep(WAIT_S)), "1", deadline="50")
        assert status == 200 and isinstance(CODEC.decode_error(answer), RpcTimeoutError)
        assert await world.endpoint.ended == "cancelled"

    run(scenario)


def test_a_caller_that_goes_away_ends_the_handler():
    async def scenario(world):
        call = asyncio.ensure_future(world.gateway().ask(Sleep(WAIT_S), None))
        await world.endpoint.began.wait()
        await world.calling.close()
        with pytest.raises(EndpointUnreachableError):
            await call
        assert await world.endpoint.ended == "cancelled"

    run(scenario)


def test_what_must_not_stop_half_way_goes_on_when_the_caller_goes_away():
    async def scenario(world):
        call = asyncio.ensure_future(world.gateway().ask(Sleep(-0.2), None))
        await world.endpoint.began.wait()
        call.cancel()
        assert await world.endpoint.ended == "whole"

    run(scenario)


def test_nobody_answers_where_nobody_is_at_once():
    async def scenario(world):
        gateway = world.gateway()
        await gateway.ask(Add([1]))
        world.called.stop(world.endpoint)
        with pytest.raises(EndpointUnreachableError, match="nothing answers at"):
            await gateway.ask(Add([1]))
        await world.servers[0].stop()
        began = time.monotonic()
        for _ in range(3):
            with pytest.raises(EndpointUnreachableError, match="nothing answers at"):
                await gateway.ask(Add([1]), timeout_s=WAIT_S)
        assert time.monotonic() - began < WAIT_S / 2

    run(scenario)


def test_a_call_that_waits_hears_at_once_that_the_other_process_has_gone():
    async def scenario(world):
        call = asyncio.ensure_future(world.gateway().ask(Sleep(WAIT_S), None))
        await world.endpoint.began.wait()
        for connection in tuple(world.servers[0]._guard._connections):
            connection.transport.abort()  # what the kernel does for a process that is killed
        with pytest.raises(EndpointUnreachableError):
            await call

    run(scenario)


def test_a_server_that_starts_again_is_reached_over_a_new_connection():
    async def scenario(world):
        gateway = world.gateway()
        await gateway.ask(Add([1]))
        port = world.servers[0].port
        await world.servers[0].stop()
        again = HttpServer("127.0.0.1", (port,), Credentials(SECRET))
        service = HttpRpcService(again, CODEC, Credentials(SECRET))
        service.start(world.endpoint)
        await again.start()
        await gateway.ask(Add([2]))
        await again.stop()
        assert world.endpoint.numbers == [1, 2]

    run(scenario)


@pytest.mark.parametrize("caller_secret", [b"another secret!!!", b""])
def test_a_caller_without_the_secret_is_told_so_and_not_that_nobody_is_there(caller_secret):
    async def scenario(world):
        with pytest.raises(AccessDeniedError, match="refuses Add") as refused:
            await world.gateway().ask(Add([1]))
        assert not refused.value.retryable
        assert world.endpoint.numbers == []

    run(scenario, caller_secret=caller_secret)


def test_a_caller_whose_clock_differs_is_told_by_how_much_and_from_whom_and_so_is_the_other_side(caplog):
    async def scenario(world):
        clock = ManualClock(time.time() - 75)
        world.calling._credentials = Credentials(SECRET, clock)
        here = re.escape(socket.gethostname())
        told = rf"/counter refuses Add of {here}: .* 7[5-9] s old by the clock of {here}, "
        with pytest.raises(AccessDeniedError, match=told + "more than the 60 s that are allowed"):
            await world.gateway().ask(Add([1]))
        refused = "POST /rpc/counter from 127.0.0.1 is refused: "
        assert any(text.startswith(refused) and "clocks of the machines differ" in text for text in caplog.messages)
        clock.advance(30)
        await world.gateway().ask(Add([1]))

    run(scenario)


def test_a_message_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(http_service, "MESSAGE_LIMIT", 1000)

    async def scenario(world):
        with pytest.raises(RemoteCallError, match="413"):
            await world.gateway().ask(Add(list(range(10_000))))
        await world.gateway().ask(Add([1]))

    run(scenario)


def test_connections_are_kept_and_no_call_leaves_anything_behind():
    async def scenario(world):
        gateway = world.gateway()
        await gateway.ask(Add([1]))
        gc.collect()
        fds, tasks = psutil.Process().num_fds(), len(asyncio.all_tasks())
        for number in range(200):
            await gateway.ask(Add([number]))
        for _ in range(20):
            with pytest.raises(JobNotFoundError):
                await gateway.ask(Break("engine"))
        assert psutil.Process().num_fds() == fds and len(asyncio.all_tasks()) == tasks
        assert len(world.servers[0]._guard) == 1

    run(scenario)


@pytest.mark.parametrize("secret", [b"another secret!!!", b""])
def test_a_reply_of_somebody_without_the_secret_is_not_believed(secret):
    """Whoever takes the port of a process that has ended must not be able to speak for it."""

    async def scenario(world):
        world.called._credentials = Credentials(secret) if secret else None
        with pytest.raises(AccessDeniedError, match="does not come from a process with the cluster's secret"):
            await world.gateway().ask(Add([1]))
        with pytest.raises(AccessDeniedError, match="does not come from"):
            await world.gateway(2).ask(Add([1]))

    run(scenario)


class Flipping:
    """Carries bytes between a caller and a port, and flips one bit of what goes one way, once."""

    def __init__(self, port, is_reply, flip_at):
        self._target = port
        self._is_reply = is_reply
        self._flip_at = flip_at
        self.is_flipped = False
        self._work = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in tuple(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    async def _connected(self, reader, writer):
        self._work.add(asyncio.current_task())
        there = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            await asyncio.gather(self._carry(reader, there[1], False), self._carry(there[0], writer, True))
        except asyncio.CancelledError:  # the end of the test; asyncio would report it
            return
        finally:
            there[1].close()
            writer.close()
            self._work.discard(asyncio.current_task())

    async def _carry(self, reader, writer, is_reply):
        position = 0
        try:
            while chunk := bytearray(await reader.read(65536)):
                if is_reply is self._is_reply and not self.is_flipped and self._flip_at - position < len(chunk):
                    chunk[self._flip_at - position] ^= 0x04
                    self.is_flipped = True
                position += len(chunk)
                writer.write(chunk)
            writer.write_eof()
        except OSError:
            return


@pytest.mark.thorough
@pytest.mark.parametrize("is_reply", [False, True])
def test_a_bit_that_is_flipped_on_the_way_never_changes_a_call_and_looks_like_nobody_there_at_most(is_reply):
    """Callers live with a TaskExecutor that cannot be reached; nothing else may come of a bad cable."""

    async def called(world, flip_at):
        async with Flipping(world.servers[0].port, is_reply, flip_at) as way:
            try:
                reply = await world.calling.connect(f"127.0.0.1:{way.port}/counter", 1).ask(Add([flip_at]), 0.5)
            except (EndpointUnreachableError, RpcTimeoutError):
                outcome = "unreachable"
            else:
                assert reply.numbers[-1] == flip_at
                outcome = "answered"
            return outcome, way.is_flipped

    async def scenario(world):
        outcomes = []
        for flip_at in range(0, 700, 9):
            outcome, is_flipped = await called(world, flip_at)
            if not is_flipped:
                break
            outcomes.append(outcome)
            assert world.endpoint.numbers.count(flip_at) <= 1
            assert set(world.endpoint.numbers) <= set(range(flip_at + 1))
        assert len(outcomes) > 10
        # What is refused is sent again; what is wrong with a reply is not known.
        assert "unreachable" in outcomes if is_reply else outcomes.count("answered") > len(outcomes) / 2

    run(scenario)


def test_a_reply_that_proves_nothing_is_as_if_nobody_had_answered():
    assert issubclass(UntrustedReplyError, EndpointUnreachableError) and UntrustedReplyError.retryable
