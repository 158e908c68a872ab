"""What is true of kept connections alone: when they end, and what becomes of their calls."""

from __future__ import annotations

import asyncio
import re
import socket
import time

import pytest

from engine.clock import ManualClock
from engine.errors import FencedError
from engine.rpc import called_connection, calling_connection, frames, http_service
from engine.rpc.credentials import Credentials
from engine.rpc.errors import AccessDeniedError, EndpointUnreachableError, RemoteCallError, RpcTimeoutError
from engine.rpc.fencing import FollowerFence
from engine.rpc.frames import BROKEN
from engine.rpc.refusals import REFUSALS, Reason
from tests.rpc.calls import CODEC, Hand, run
from tests.rpc.served import SECRET, WAIT_S
from tests.rpc.test_local_gateway import Add, Sleep


def test_a_follower_obeys_the_highest_epoch_and_none_without_proof_raises_it():
    async def scenario(world):
        await world.gateway(3).ask(Add([3]))
        async with Hand(world, changed=lambda keys: (b"?" * 32, keys[1])) as hand:
            hand.send(hand.call(CODEC.encode(Add([9])), epoch=9))
            assert await hand.heard() == (BROKEN, 0, b"")
        await world.gateway(3).ask(Add([3]))
        await world.gateway(5).ask(Add([5]))
        with pytest.raises(FencedError):
            await world.gateway(4).ask(Add([4]))
        assert world.endpoint.numbers == [3, 3, 5]

    run(scenario, fence=FollowerFence())


def test_a_handler_that_is_cancelled_by_what_it_waits_for_is_told_to_the_caller():
    async def scenario(world):
        call = asyncio.ensure_future(world.gateway().ask(Sleep(-WAIT_S), None))
        await world.endpoint.began.wait()
        await world.endpoint.stop()
        with pytest.raises(EndpointUnreachableError, match="has ended the call"):
            await call

    run(scenario)


def test_a_connection_that_says_nothing_until_a_deadline_takes_no_further_calls():
    async def scenario(world):
        await world.gateway().ask(Add([1]))
        (connection,) = world.calling._connections.values()
        held = asyncio.ensure_future(world.gateway().ask(Sleep(WAIT_S), None))
        await world.endpoint.began.wait()
        with pytest.raises(RpcTimeoutError):
            await world.gateway().ask(Sleep(WAIT_S), timeout_s=0.05)
        await world.gateway().ask(Add([2]))
        assert len(world.servers[0]._guard) == 2 and not held.done()
        held.cancel()
        await connection.ended

    run(scenario)


def test_a_deadline_on_a_connection_that_lives_leaves_it_as_it_is():
    async def scenario(world):
        late = asyncio.ensure_future(world.gateway().ask(Sleep(WAIT_S), timeout_s=0.3))
        await world.endpoint.began.wait()
        await world.gateway().ask(Add([1]))
        with pytest.raises(RpcTimeoutError):
            await late
        await world.gateway().ask(Add([2]))
        assert len(world.servers[0]._guard) == 1

    run(scenario)


@pytest.mark.parametrize("side", [calling_connection, called_connection])
def test_a_connection_that_is_not_used_is_closed_and_one_with_an_open_call_is_kept(side, monkeypatch):
    monkeypatch.setattr(side, "_IDLE_S", 0.1)

    async def scenario(world):
        await world.gateway().ask(Sleep(0.3))
        (connection,) = world.calling._connections.values()
        await connection.ended
        await world.gateway().ask(Add([1]))

    run(scenario)


def test_a_clock_that_jumps_while_a_connection_is_there_is_told_too():
    clock = ManualClock(time.time())

    async def scenario(world):
        await world.gateway().ask(Add([1]))
        before = REFUSALS.counts[Reason.CLOCK]
        clock.advance(300)
        here = re.escape(socket.gethostname())
        with pytest.raises(AccessDeniedError, match=rf"/counter refuses Add of {here}: .* 300 s ahead by the clock of"):
            await world.gateway().ask(Add([2]))
        assert REFUSALS.counts[Reason.CLOCK] == before + 1
        world.servers[0]._credentials._clock = world.called._credentials._clock = clock
        await world.gateway().ask(Add([3]))
        assert world.endpoint.numbers == [1, 3]
        assert len(world.servers[0]._guard) == 1

    run(scenario, calling=Credentials(SECRET, clock))


def test_a_message_or_a_reply_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(http_service, "MESSAGE_LIMIT", 1000)

    async def scenario(world):
        with pytest.raises(RemoteCallError, match=r"does not take Add: it has .* at most 1000 are allowed"):
            await world.gateway().ask(Add(list(range(10_000))))
        assert world.endpoint.numbers == []
        monkeypatch.setattr(called_connection, "MESSAGE_LIMIT", 500)
        await world.gateway().ask(Add([1] * 300))
        with pytest.raises(RemoteCallError, match=r"the reply has .* at most 500 are allowed"):
            await world.gateway().ask(Add([1] * 300))
        monkeypatch.setattr(frames, "MESSAGE_LIMIT", 500)
        monkeypatch.setattr(http_service, "MESSAGE_LIMIT", 10_000)
        with pytest.raises(EndpointUnreachableError, match="the other side cannot read the call"):
            await world.gateway().ask(Add([1] * 3000))

    run(scenario)
