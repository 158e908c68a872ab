"""Frames of calls that are wrong, sent by hand to a real server; nothing of them reaches a handler."""

from __future__ import annotations

import asyncio
import hmac

import pytest

from engine.rpc import called_connection
from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.errors import EndpointUnreachableError
from engine.rpc.frames import BROKEN, CANCEL, REPLY, Call, FrameReader, FrameWriter, call_payload, short_payload
from engine.rpc.greeting import METHOD, PATH, PROTOCOL_NAME, answer_greeting
from engine.rpc.http_messages import Caller, HttpRequest
from engine.rpc.principal import SECRET_HOLDER
from engine.rpc.refusals import REFUSALS, Reason
from tests.rpc.calls import CODEC, Hand, run
from tests.rpc.served import SECRET, WAIT_S
from tests.rpc.test_local_gateway import Add, Sleep


def wrong_frames(hand):
    """Frames that no caller sends, by what is wrong with them; each is one with a good proof unless it says."""
    good, writer = hand.call(CODEC.encode(Add([1]))), hand.writer
    yield "too short", writer.frame(good[:20])
    yield "no name", writer.frame(good[:33] + b"\xff")
    yield "deadline", writer.frame(good[:17] + b"\xff" * 8 + good[25:])
    yield "kind", writer.frame(short_payload(REPLY, 1))
    yield "no number", writer.frame(bytes([CANCEL]))
    yield "changed", writer.frame(good)[:-33] + b"?" + writer.frame(good)[-32:]
    yield "no proof", writer.frame(good)[:-32] + bytes(32)
    yield "too long", (2**32 - 1).to_bytes(4, "big")
    yield "nothing", bytes(4)
    yield (
        "two",
        writer.frame(
            call_payload(Call(5, 1, None, "counter", CODEC.encode(Sleep(WAIT_S)), Credentials(SECRET).now_ms()))
        )
        * 2,
    )


@pytest.mark.parametrize(
    "wrong",
    ["too short", "no name", "deadline", "kind", "no number", "changed", "no proof", "too long", "nothing", "two"],
)
def test_a_wrong_frame_ends_its_connection_is_counted_and_reaches_no_handler(wrong, monkeypatch):
    monkeypatch.setattr(called_connection, "_LINGER_S", 0.1)

    async def scenario(world):
        before = REFUSALS.counts[Reason.WRONG_SECRET]
        async with Hand(world) as hand:
            assert not CODEC.is_error(await hand.ask(CODEC.encode(Add([7]))))
            hand.stream.write(dict(wrong_frames(hand))[wrong])
            kind, number, _ = await hand.heard()
            assert kind == BROKEN and number >= 1
            hand.send(hand.call(CODEC.encode(Add([8]))))
            assert await hand.heard() is None
        assert REFUSALS.counts[Reason.WRONG_SECRET] == before + 1
        assert world.endpoint.numbers == [7]
        await world.gateway().ask(Add([9]))

    run(scenario)


def test_a_frame_is_its_length_its_payload_and_a_proof_of_its_number_and_payload():
    writer, payloads = FrameWriter(b"key" * 11), [b"one", b"two" * 1000]
    frames = [writer.frame(payload) for payload in payloads]
    for number, (payload, frame) in enumerate(zip(payloads, frames, strict=True)):
        proof = hmac.digest(b"key" * 11, number.to_bytes(8, "big") + payload, "sha256")
        assert frame == len(payload).to_bytes(4, "big") + payload + proof
    assert list(FrameReader(b"key" * 11).feed(b"".join(frames))) == payloads
    assert FrameWriter(None).frame(b"one") == frames[0][:-32]


@pytest.mark.parametrize("attack", ["repeated", "left out", "of another connection", "sent back"])
def test_a_frame_is_good_once_at_its_place_on_its_connection(attack):
    async def scenario(world):
        async with Hand(world) as hand, Hand(world) as other:
            frame = hand.send(hand.call(CODEC.encode(Add([1]))))
            await hand.heard()
            target = hand
            if attack == "left out":
                hand.writer.frame(b"never sent")
                hand.send(hand.call(CODEC.encode(Add([2]))))
            elif attack == "sent back":
                hand.stream.write(FrameWriter(hand.keys[1]).frame(b"a reply" * 10))
            else:
                target = other if attack == "of another connection" else hand
                target.stream.write(frame)
            assert (await target.heard())[0] == BROKEN
        assert world.endpoint.numbers == [1]

    run(scenario)


def test_a_greeting_that_was_overheard_is_refused_and_one_that_asks_for_less_too():
    async def scenario(world):
        async def answer(headers):
            reader, writer = await asyncio.open_connection("127.0.0.1", world.servers[0].port)
            named = {"Host": "127.0.0.1", "Content-Length": "0", **headers}
            lines = [f"{METHOD} {PATH} HTTP/1.1", *(f"{key}: {value}" for key, value in named.items()), "", ""]
            writer.write("\r\n".join(lines).encode())
            status = int((await reader.readline()).split()[1])
            writer.close()
            return status

        asks = {"Upgrade": PROTOCOL_NAME, "Connection": "Upgrade"}
        signed = {AUTHORIZATION: Credentials(SECRET).sign(METHOD, PATH)}
        assert await answer({**asks, **signed}) == 101
        assert await answer({**asks, **signed}) == 401
        assert await answer(asks) == 401
        assert await answer({AUTHORIZATION: Credentials(SECRET).sign(METHOD, PATH)}) == 426

    run(scenario)


def test_a_caller_without_a_signature_gets_no_connection_though_the_server_let_it_in():
    caller = Caller("127.0.0.1", "none", "")
    headers = {"Upgrade": PROTOCOL_NAME}
    request = HttpRequest(METHOD, PATH, {}, {}, headers, b"", "", 0, None, PATH, caller, SECRET_HOLDER)
    with pytest.raises(RuntimeError, match="without a signature"):
        answer_greeting(request, Credentials(SECRET), "")
    assert answer_greeting(request, None, "")[1] == (None, None)


def test_a_connection_has_a_number_of_open_calls_at_most(monkeypatch):
    monkeypatch.setattr(called_connection, "OPEN_MAX", 2)

    async def scenario(world):
        held = [asyncio.ensure_future(world.gateway().ask(Sleep(WAIT_S), None)) for _ in range(2)]
        await world.endpoint.began.wait()
        with pytest.raises(EndpointUnreachableError, match="answers 2 calls of this process already"):
            await world.gateway().ask(Add([1]))
        held[0].cancel()
        assert await world.endpoint.ended == "cancelled"
        await world.gateway().ask(Add([2]))
        world.endpoint.ended = asyncio.get_running_loop().create_future()
        held[1].cancel()
        assert await world.endpoint.ended == "cancelled"
        assert world.endpoint.numbers == [2]

    run(scenario)


def test_replies_that_are_not_read_stop_the_reading_of_calls():
    async def scenario(world):
        async with Hand(world) as hand:
            hand.stream.transport.pause_reading()
            message = CODEC.encode(Add([0] * 10_000))
            for _ in range(2000):
                hand.send(hand.call(message))
            counts = [-1, -2]
            while counts[-1] != counts[-2]:  # each reply has all numbers so far
                await asyncio.sleep(0.3)
                counts.append(len(world.endpoint.numbers))
            assert 0 < counts[-1] < 2000 * 10_000
            hand.stream.transport.abort()

    run(scenario)
