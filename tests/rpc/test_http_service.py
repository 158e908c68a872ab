"""Calls between two services, each with a server of its own, over real sockets, in both ways."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import threading
import time

import psutil
import pytest

from engine.clock import ManualClock
from engine.errors import FencedError, IllegalTransitionError, JobNotFoundError
from engine.rpc.credentials import Credentials
from engine.rpc.errors import (
    AccessDeniedError,
    EndpointUnreachableError,
    MessageCodecError,
    RemoteCallError,
    RpcTimeoutError,
    UntrustedReplyError,
)
from tests.rpc import calls
from tests.rpc.calls import CODEC
from tests.rpc.served import SECRET, WAIT_S
from tests.rpc.test_local_gateway import Add, Break, Carry, Sleep


def test_a_call_is_answered_over_the_network(run):
    async def scenario(world):
        assert (await world.gateway().ask(Add([1, 2]))).numbers == [1, 2]
        assert world.called.address_of("x") == f"127.0.0.1:{world.servers[0].port}/x"
        assert world.gateway().address == world.called.address_of("counter")

    run(scenario)


def test_calls_to_one_address_start_in_the_order_they_were_made(run):
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
        assert not world.called._connections
        assert world.endpoint.numbers == [1, 1]

    calls.run(scenario)


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

    calls.run(scenario, checks_local=checks_local)


def test_errors_travel_as_they_do_within_a_process(run):
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


def test_another_epoch_is_refused_before_the_message_is_decoded(run):
    async def scenario(world):
        for epoch in (0, 2):
            with pytest.raises(FencedError) as fenced:
                await world.gateway(epoch).ask(Add([7]))
            assert (fenced.value.expected, fenced.value.received) == (1, epoch)
        # Even bytes that are no message: the epoch is what is wrong first.
        async with world.by_hand() as hand:
            assert isinstance(CODEC.decode_error(await hand.ask(b"\xff", epoch=2)), FencedError)
            assert isinstance(CODEC.decode_error(await hand.ask(b"\xff", epoch=1)), MessageCodecError)
        assert world.endpoint.numbers == []

    run(scenario)


def test_a_deadline_ends_the_waiting_and_the_handler(run):
    async def scenario(world):
        for timeout_s in (0.1, 1.5, 12.5):  # where everything is slow a deadline may end before the call arrives
            with pytest.raises(RpcTimeoutError, match=re.escape(f"did not answer Sleep within {timeout_s} s")):
                await world.gateway().ask(Sleep(WAIT_S), timeout_s=timeout_s)
            if world.endpoint.began.is_set():
                break
        assert await world.endpoint.ended == "cancelled"
        await world.gateway().ask(Add([1]))

    run(scenario)


def test_the_called_side_keeps_the_deadline_by_itself(run):
    async def scenario(world):
        async with world.by_hand() as hand:
            reply = await hand.ask(CODEC.encode(Sleep(WAIT_S)), timeout_s=0.05)
            assert isinstance(CODEC.decode_error(reply), RpcTimeoutError)
        assert await world.endpoint.ended == "cancelled"

    run(scenario)


def test_a_caller_that_goes_away_ends_the_handler(run):
    async def scenario(world):
        call = asyncio.ensure_future(world.gateway().ask(Sleep(WAIT_S), None))
        await world.endpoint.began.wait()
        await world.calling.close()
        with pytest.raises(EndpointUnreachableError):
            await call
        assert await world.endpoint.ended == "cancelled"

    run(scenario)


def test_what_must_not_stop_half_way_goes_on_when_the_caller_goes_away(run):
    async def scenario(world):
        call = asyncio.ensure_future(world.gateway().ask(Sleep(-0.2), None))
        await world.endpoint.began.wait()
        call.cancel()
        assert await world.endpoint.ended == "whole"

    run(scenario)


def test_nobody_answers_where_nobody_is_at_once(run):
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


def test_a_call_that_waits_hears_at_once_that_the_other_process_has_gone(run):
    async def scenario(world):
        call = asyncio.ensure_future(world.gateway().ask(Sleep(WAIT_S), None))
        await world.endpoint.began.wait()
        for connection in tuple(world.servers[0]._guard._connections):
            connection.transport.abort()  # what the kernel does for a process that is killed
        with pytest.raises(EndpointUnreachableError):
            await call

    run(scenario)


def test_a_server_that_starts_again_is_reached_over_a_new_connection(run):
    async def scenario(world):
        gateway = world.gateway()
        await gateway.ask(Add([1]))
        await world.again(world.way)
        await gateway.ask(Add([2]))
        assert world.endpoint.numbers == [1, 2]

    run(scenario)


@pytest.mark.parametrize("calling", [Credentials(b"another secret!!!"), None], ids=["another", "none"])
def test_a_caller_without_the_secret_is_told_so_and_not_that_nobody_is_there(run, calling):
    async def scenario(world):
        with pytest.raises(AccessDeniedError, match="refuses Add") as refused:
            await world.gateway().ask(Add([1]))
        assert not refused.value.retryable
        assert world.endpoint.numbers == []

    run(scenario, calling=calling)


def test_a_caller_whose_clock_differs_is_told_by_how_much_and_from_whom_and_so_is_the_other_side(run, caplog):
    clock = ManualClock(time.time() - 75)

    async def scenario(world):
        here = re.escape(socket.gethostname())
        told = rf"/counter refuses Add of {here}: .* 7[5-9] s old by the clock of {here}, "
        with pytest.raises(AccessDeniedError, match=told + "more than the 60 s that are allowed"):
            await world.gateway().ask(Add([1]))
        refused = re.compile(r"POST /rpc(/counter)? from 127\.0\.0\.1 is refused: ")
        assert any(refused.match(text) and "clocks of the machines differ" in text for text in caplog.messages)
        clock.advance(30)
        await world.gateway().ask(Add([1]))

    run(scenario, calling=Credentials(SECRET, clock))


def test_connections_are_kept_and_no_call_leaves_anything_behind(run):
    async def scenario(world):
        gateway = world.gateway()
        await gateway.ask(Add([1]))
        while len(world.servers[0]._guard) > 1:  # a greeting that was refused
            await asyncio.sleep(0.01)
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


@pytest.mark.parametrize("called", [Credentials(b"another secret!!!"), None], ids=["another", "none"])
def test_a_reply_of_somebody_without_the_secret_is_not_believed(run, called):
    """Whoever takes the port of a process that has ended must not be able to speak for it."""

    async def scenario(world):
        with pytest.raises(AccessDeniedError, match="does not come from a process with the cluster's secret"):
            await world.gateway().ask(Add([1]))
        with pytest.raises(AccessDeniedError, match="does not come from"):
            await world.gateway(2).ask(Add([1]))

    run(scenario, called=called)


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
def test_a_bit_that_is_flipped_on_the_way_never_changes_a_call_and_looks_like_nobody_there_at_most(run, is_reply):
    """Callers live with a TaskExecutor that cannot be reached; nothing else may come of a bad cable."""

    async def called(world, flip_at):
        async with Flipping(world.servers[0].port, is_reply, flip_at) as way:
            if world.way == "requests":
                world.calling._requests.note(f"127.0.0.1:{way.port}")
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


def test_calls_that_wait_for_a_connection_keep_their_order_and_may_be_given_up(run):
    async def scenario(world):
        calls = [asyncio.ensure_future(world.gateway().ask(Add([number]))) for number in range(5)]
        await asyncio.sleep(0)
        calls[1].cancel()
        late = world.gateway().ask(Add([5]))
        await asyncio.gather(*(call for call in calls if call is not calls[1]), late)
        assert world.endpoint.numbers == [0, 2, 3, 4, 5]
        assert world.way == "requests" or len(world.servers[0]._guard) == 1

    run(scenario)
