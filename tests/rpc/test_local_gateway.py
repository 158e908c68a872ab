"""Endpoints and calls between them: dispatch by type, fencing, deadlines, and nothing shared by accident."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any, Protocol

import msgspec
import pytest

from engine.errors import FencedError, IllegalTransitionError, JobNotFoundError
from engine.rpc.codec import MessageCodec
from engine.rpc.endpoint import RpcEndpoint, handler_names
from engine.rpc.errors import EndpointUnreachableError, MessageCodecError, RemoteCallError, RpcTimeoutError
from engine.rpc.fencing import FollowerFence, LeaderFence
from engine.rpc.local_gateway import LocalRpcService
from engine.rpc.request import ACKNOWLEDGE, Acknowledge, Request


class Total(msgspec.Struct, frozen=True):
    numbers: list[int]


class Add(Request[Total], frozen=True):
    numbers: list[int]


class Break(Request[Acknowledge], frozen=True):
    kind: str


class Sleep(Request[Acknowledge], frozen=True):
    seconds: float


class Carry(Request[Acknowledge], frozen=True):
    cargo: Any


TYPES = (Acknowledge, Add, Break, Carry, Sleep, Total)


class CounterGateway(Protocol):
    async def add(self, request: Add) -> Total: ...

    async def fail(self, request: Break) -> Acknowledge: ...

    async def sleep(self, request: Sleep) -> Acknowledge: ...

    async def carry(self, request: Carry) -> Acknowledge: ...


class Counter(RpcEndpoint):
    protocol = CounterGateway

    def __init__(self, fence) -> None:
        self.faults: list[BaseException] = []
        super().__init__("counter", fence, self.faults.append)
        self.numbers: list[int] = []
        self.cargo: Any = None

    async def add(self, request: Add) -> Total:
        self.numbers.extend(request.numbers)
        request.numbers.append(-1)  # a receiver that writes into its message
        return Total(self.numbers)

    async def fail(self, request: Break) -> Acknowledge:
        raise {"engine": JobNotFoundError("no job"), "state": IllegalTransitionError("no move")}.get(
            request.kind, KeyError(request.kind)
        )

    async def sleep(self, request: Sleep) -> Acknowledge:
        await asyncio.sleep(request.seconds)
        self.numbers.append(1)
        return ACKNOWLEDGE

    async def carry(self, request: Carry) -> Acknowledge:
        self.cargo = request.cargo
        return ACKNOWLEDGE


def run(scenario, checked=True, fence=None):
    async def body():
        service = LocalRpcService(MessageCodec(TYPES) if checked else None)
        endpoint = Counter(fence or LeaderFence(1))
        service.start(endpoint)
        try:
            return await scenario(service, endpoint)
        finally:
            await endpoint.stop()

    return asyncio.run(body())


def test_a_message_finds_its_handler_by_its_type():
    assert handler_names(CounterGateway) == {Add: "add", Break: "fail", Sleep: "sleep", Carry: "carry"}

    async def scenario(service, endpoint):
        assert (await service.connect("counter", 1).ask(Add([1, 2]))).numbers == [1, 2]

    run(scenario)


@pytest.mark.parametrize("checked", [True, False])
def test_calls_start_in_the_order_they_were_made(checked):
    async def scenario(service, endpoint):
        gateway = service.connect("counter", 1)
        await asyncio.gather(*(gateway.ask(Add([number])) for number in range(50)))
        assert endpoint.numbers == list(range(50))

    run(scenario, checked)


def test_with_the_codec_neither_side_can_write_into_what_the_other_has():
    async def scenario(service, endpoint):
        sent = [1]
        reply = await service.connect("counter", 1).ask(Add(sent))
        assert sent == [1]
        reply.numbers.append(99)
        assert endpoint.numbers == [1]

    run(scenario)


def test_an_object_shared_across_a_gateway_fails_with_the_codec_and_only_there():
    lock = threading.Lock()

    async def checked(service, endpoint):
        with pytest.raises(MessageCodecError, match="Carry cannot be sent"):
            await service.connect("counter", 1).ask(Carry(lock))

    async def unchecked(service, endpoint):
        await service.connect("counter", 1).ask(Carry(lock))
        assert endpoint.cargo is lock

    run(checked)
    run(unchecked, checked=False)


@pytest.mark.parametrize("checked", [True, False])
def test_another_epoch_is_refused_before_state_is_touched(checked):
    async def scenario(service, endpoint):
        for epoch in (0, 2):
            with pytest.raises(FencedError) as fenced:
                await service.connect("counter", epoch).ask(Add([7]))
            assert (fenced.value.expected, fenced.value.received) == (1, epoch)
        assert endpoint.numbers == [] and endpoint.faults == []

    run(scenario, checked)


def test_a_follower_obeys_the_highest_epoch_it_has_seen():
    async def scenario(service, endpoint):
        await service.connect("counter", 3).ask(Add([3]))
        await service.connect("counter", 5).ask(Add([5]))
        with pytest.raises(FencedError):
            await service.connect("counter", 4).ask(Add([4]))
        assert endpoint.numbers == [3, 5]

    run(scenario, fence=FollowerFence())


def test_a_deadline_ends_the_waiting_and_not_the_work():
    async def scenario(service, endpoint):
        with pytest.raises(RpcTimeoutError, match=r"counter did not answer Sleep within 0\.01 s"):
            await service.connect("counter", 1).ask(Sleep(0.05), timeout_s=0.01)
        await asyncio.sleep(0.1)
        assert endpoint.numbers == [1]

    run(scenario)


def test_a_call_without_a_deadline_has_that_of_its_service():
    async def scenario(service, endpoint):
        hasty, patient = LocalRpcService(ask_timeout_s=0.01), LocalRpcService(ask_timeout_s=None)
        for each in (hasty, patient):
            each.start(endpoint)
        with pytest.raises(RpcTimeoutError, match=r"within 0\.01 s"):
            await hasty.connect("counter", 1).ask(Sleep(0.05))
        await hasty.connect("counter", 1).ask(Sleep(0.05), None)
        await patient.connect("counter", 1).ask(Sleep(0.05))
        with pytest.raises(RpcTimeoutError, match=r"within 0\.02 s"):
            await patient.connect("counter", 1).ask(Sleep(0.05), 0.02)

    run(scenario)


@pytest.mark.parametrize("timeout_s", [None, 60.0])
def test_a_caller_that_goes_away_does_not_end_the_work(timeout_s):
    async def scenario(service, endpoint):
        lost = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: lost.append(context))
        gateway = service.connect("counter", 1)
        for request in (Sleep(0.02), Break("engine")):
            call = asyncio.create_task(gateway.ask(request, timeout_s))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        await asyncio.sleep(0.1)
        gc.collect()
        assert (endpoint.numbers, lost) == ([1], [])

    run(scenario)


def test_engine_errors_go_to_the_caller_and_faults_also_to_on_fatal():
    async def scenario(service, endpoint):
        gateway = service.connect("counter", 1)
        with pytest.raises(JobNotFoundError, match="no job"):
            await gateway.ask(Break("engine"))
        assert endpoint.faults == []
        with pytest.raises(IllegalTransitionError):
            await gateway.ask(Break("state"))
        with pytest.raises(RemoteCallError, match="KeyError"):
            await gateway.ask(Break("other"))
        assert [type(fault) for fault in endpoint.faults] == [IllegalTransitionError, KeyError]

    run(scenario)


def test_a_fault_of_spawned_work_is_handed_to_on_fatal():
    async def work():
        raise ZeroDivisionError

    async def scenario(service, endpoint):
        endpoint.spawn(work(), "work")
        await asyncio.sleep(0.01)
        assert [type(fault) for fault in endpoint.faults] == [ZeroDivisionError]

    run(scenario)


def test_nobody_answers_where_nobody_is_or_where_somebody_stopped():
    async def scenario(service, endpoint):
        with pytest.raises(EndpointUnreachableError, match="nothing answers at elsewhere"):
            await service.connect("elsewhere", 1).ask(Add([1]))
        await endpoint.stop()
        with pytest.raises(EndpointUnreachableError, match="counter has stopped"):
            await service.connect("counter", 1).ask(Add([1]))
        service.stop(endpoint)
        with pytest.raises(EndpointUnreachableError):
            await service.connect("counter", 1).ask(Add([1]))

    run(scenario)


def test_stop_ends_spawned_work():
    async def scenario(service, endpoint):
        task = endpoint.spawn(asyncio.sleep(60), "sleep")
        await endpoint.stop()
        assert task.cancelled()

    run(scenario)


def test_a_protocol_method_takes_one_request():
    class Bad(Protocol):
        async def two(self, first: Add, second: Add) -> Total: ...

    class NotRequest(Protocol):
        async def one(self, first: int) -> Total: ...

    for protocol in (Bad, NotRequest):
        with pytest.raises(TypeError):
            handler_names(protocol)
