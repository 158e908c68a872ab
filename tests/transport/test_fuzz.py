"""Fuzzing: frames of strangers and broken peers, as many as ``FRAMES`` says: no fall, hang, growth or wrong byte.

    FRAMES=10000000 SEED=7 python -m pytest tests/transport/test_fuzz.py

Peers that have greeted send frames that are sealed well, with fields of all kinds; the last one may be damaged.
"""

from __future__ import annotations

import gc
import os
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from engine.errors import PartitionConnectionError
from engine.exchange.ready_queue import ReadyQueue
from engine.rpc.credentials import Credentials
from engine.transport.client_connection import ClientConnection
from engine.transport.data_server import PartitionSource
from engine.transport.frames import HEADER_BYTES, FrameKind, decode_header, encode_frame
from engine.transport.greeting_channel import GreetingChannel
from engine.transport.handshake import Greeting, Hello, greet_as_reader, greet_as_writer
from engine.transport.read_request import ReadRequest
from engine.transport.server_connection import ServerConnection
from tests.exchange.world import BLOCKING, World, descriptor, partition_id
from tests.heap import resident_bytes
from tests.transport.test_remote_channels import SCHEMA, batch_of

FRAMES = int(os.environ.get("FRAMES", "40000"))
SEED = os.environ.get("SEED", "")
WAIT_S = 60
CHANNELS = 8
EXCLUSIVE = 8
IDENTITY = 7
AMOUNTS = (0, 1, 2, 3, 1000, 2**31, 2**32 - 1)
#: the address sanitizer keeps what was freed, up to 256 MB of it
GROWTH_MAX = (32 << 20) + (256 << 20 if "libasan" in os.environ.get("LD_PRELOAD", "") else 0)
pytestmark = pytest.mark.timeout(600 + FRAMES // 1000)


class Growth:
    """How much the process has grown since its pools had their size."""

    def __init__(self) -> None:
        self._begin: int | None = None
        self._rounds = 0

    def note(self) -> None:
        self._rounds += 1
        if self._rounds == 20:
            gc.collect()
            self._begin = resident_bytes()

    def check(self) -> None:
        gc.collect()
        assert self._begin is None or resident_bytes() - self._begin < GROWTH_MAX


def damaged(chance: random.Random, content: bytes) -> bytes:
    """Return bytes that are other ones somewhere: flipped, left out, put in, or cut off."""
    result = bytearray(content)
    at = chance.randrange(len(result))
    match chance.randrange(4):
        case 0:
            result[at] ^= 1 << chance.randrange(8)
        case 1:
            del result[at : at + chance.choice((1, 3, 50))]
        case 2:
            result[at:at] = chance.randbytes(chance.choice((1, 4, 100)))
        case _:
            del result[at:]
    return bytes(result)


def test_no_damaged_header_is_taken_for_a_frame() -> None:
    chance = random.Random(f"1 {SEED}")
    good = [
        encode_frame(kind, chance.randrange(2**32), b"", chance.randrange(6), chance.randrange(2**32), amount, 5)
        for kind in FrameKind
        for amount in AMOUNTS
    ]
    for header in good:
        assert decode_header(header)["size"] == 0
    refused = 0
    for _ in range(FRAMES):
        header = bytearray(chance.choice(good))
        for _ in range(chance.choice((1, 1, 2, 8))):
            header[chance.randrange(HEADER_BYTES)] ^= chance.randrange(1, 256)
        try:
            decode_header(header)
        except ValueError:
            refused += 1
        else:
            assert bytes(header) in good, "flips that take each other back"
            refused += 1
    assert refused == FRAMES


@pytest.mark.parametrize("side", ["reader", "writer"])
def test_no_greeting_but_the_right_one_is_accepted(side: str) -> None:
    """Each greeting of a stranger is one to four frames."""
    chance = random.Random(f"2 {SEED}")
    secret, growth = Credentials(b"s" * 32), Growth()
    greet: Callable[..., None] = greet_as_reader if side == "reader" else greet_as_writer
    steps = (2, 4) if side == "reader" else (1, 3)
    for _ in range(max(FRAMES // 1000, 40)):
        frames = b"".join(
            encode_frame(
                chance.choice((FrameKind.HELLO, FrameKind.HELLO, *FrameKind)),
                payload=msgspec.msgpack.encode(Hello("drey", chance.randbytes(chance.choice((0, 16, 32, 900))))),
                kind=step,
            )
            for step in steps
        )
        if chance.random() < 0.5:
            frames = damaged(chance, frames)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(frames)
            ours.shutdown(socket.SHUT_WR)
            with pytest.raises(PartitionConnectionError):
                greet(GreetingChannel(theirs, WAIT_S), Greeting("drey", secret))
        growth.note()
    growth.check()


class Threads:
    """Loops of one connection; whoever does not end is a hang."""

    def __init__(self, *loops: Callable[[], None]) -> None:
        self._threads = [threading.Thread(target=loop, daemon=True) for loop in loops]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(WAIT_S)
            assert not thread.is_alive(), "a loop of the connection hangs"


def receive_all(connection: socket.socket) -> None:
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        pass


def send_all(connection: socket.socket, content: bytes) -> None:
    try:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
    except OSError:  # the other side had enough
        pass


@pytest.fixture
def stored(world: World) -> Iterator[PartitionSource]:
    """A partition that is there, and one that is not."""
    partition = world.partition(descriptor(CHANNELS, "HASH", ["k"], BLOCKING))
    writer = world.writer(partition, SCHEMA)
    writer.emit(batch_of(0, 500))
    writer.finish()
    writer.close()
    source = PartitionSource(world.manager)
    yield source
    source.disk.close()
    world.manager.release(partition.id)


def requests(chance: random.Random) -> list[bytes]:
    """Frames of readers: asking, giving credit, leaving, and what only writers send."""
    payloads = [
        msgspec.msgpack.encode(ReadRequest(partition_id(subtask), index, size))
        for subtask in (0, 0, 0, 1)
        for index in (0, 1, CHANNELS, -1, 2**40)
        for size in (4096, 4096, 100, 0)
    ]
    frames = []
    for _ in range(3000):
        kind = chance.choices((2, 5, 7, 3, 4, 6, 9, 1, 8), (4, 75, 10, 3, 3, 3, 3, 3, 0.05))[0]
        payload = b""
        if kind in (1, 2, 3, 4):
            payload = chance.choice(payloads)
            payload = damaged(chance, payload) if chance.random() < 0.2 else payload
        amount = chance.choices(AMOUNTS, (0.02, 40, 20, 20, 1, 0.02, 0.02))[0]
        channel = chance.choices((*range(400), 60_000, 2**32 - 1), (*(1,) * 400, 0.05, 0.05))[0]
        frames.append(
            encode_frame(kind, channel, payload, chance.randrange(256), chance.randrange(9), amount, IDENTITY)
        )
    return frames


def test_no_frames_of_a_reader_harm_the_one_who_serves(world: World, stored: PartitionSource) -> None:
    chance, growth = random.Random(f"3 {SEED}"), Growth()
    pool = requests(chance)
    sent = 0
    while sent < FRAMES:
        frames = chance.choices(pool, k=chance.choice((1, 20, 200)))
        sent += len(frames)
        if chance.random() < 0.3:
            frames[-1] = damaged(chance, frames[-1])
        ours, theirs = socket.socketpair()
        with ours, theirs:
            server = ServerConnection(theirs.fileno(), "fuzz", stored)
            threads = Threads(server.read_loop, server.write_loop, lambda end=ours: receive_all(end))
            send_all(ours, b"".join(frames))
            threads.join()
            stored.forget(server)
            server.forget_descriptor()
        assert server.broken
        growth.note()
    growth.check()
    (partition,) = (world.manager.find(each) for each in world.manager.partition_ids)
    assert partition is not None
    for index in range(CHANNELS):  # what is served is as it was
        view = partition.create_view(index, ReadyQueue(1), 0)
        assert view.backlog() > 0
        view.release()


def responses(chance: random.Random, plausible: bool) -> tuple[list[bytes], list[list[int]]]:
    """Frames of a writer, and the numbers of the data among them, by channel, that are as they should be."""
    frames: list[bytes] = []
    numbers: list[list[int]] = [[] for _ in range(CHANNELS)]
    for number in range(chance.choice((1, 20, 100))):
        channel = chance.randrange(CHANNELS)
        kind = chance.choices((3, 6, 6, 9), (30, 20, 20, 5))[0]
        sequence, identity, data_kind, payload = len(numbers[channel]), IDENTITY, 0, b""
        if kind == 3:
            payload = struct.pack("<II", channel, number) * chance.choice((1, 64, 512))
            if sequence >= EXCLUSIVE:
                continue
            numbers[channel].append(number)
        amount = chance.choice(AMOUNTS)
        frames.append(encode_frame(kind, channel, payload, data_kind, sequence, amount, identity))
    if not plausible:
        frames.append(
            encode_frame(
                chance.choice((1, 2, 3, 3, 3, 4, 5, 7, 8)),
                chance.choice((0, 1, CHANNELS, 99, 2**32 - 1)),
                chance.randbytes(chance.choice((0, 8, 4096, 4097, 60_000))),
                chance.randrange(256),
                chance.randrange(2 * EXCLUSIVE),
                chance.choice(AMOUNTS),
                chance.choice((IDENTITY, IDENTITY, 8)),
            )
        )
    return frames, numbers


def test_no_frames_of_a_writer_harm_the_one_who_reads_nor_get_wrong_bytes_to_him(world: World) -> None:
    chance, growth = random.Random(f"4 {SEED}"), Growth()
    sent = 0
    while sent < FRAMES:
        is_plausible = chance.random() < 0.3
        frames, numbers = responses(chance, is_plausible)
        sent += len(frames)
        if chance.random() < 0.3:
            frames[-1] = damaged(chance, frames[-1])
        pool = world.network.local_pool(1, CHANNELS * EXCLUSIVE, "fuzz")
        ours, theirs = socket.socketpair()
        with ours, theirs:
            client = ClientConnection(theirs.fileno(), "fuzz")
            ready = ReadyQueue(CHANNELS)
            channels = [client.open_channel(ready, index, pool, EXCLUSIVE, IDENTITY) for index in range(CHANNELS)]
            for channel in channels:
                channel.request(b"x")
            threads = Threads(client.read_loop, client.write_loop, lambda end=ours: receive_all(end))
            send_all(ours, b"".join(frames))
            threads.join()
            for index, channel in enumerate(channels):
                check_data(channel, index, numbers[index])
                channel.release()
                assert channel.buffer_count == 0
            client.forget_descriptor()
        pool.close()
        growth.note()
    growth.check()


@pytest.mark.parametrize("kind", [FrameKind.BUFFER_RESPONSE, FrameKind.BACKLOG_ANNOUNCEMENT, FrameKind.ERROR_RESPONSE])
def test_a_frame_for_a_channel_that_was_never_opened_is_nobodys(world: World, kind: FrameKind) -> None:
    pool = world.network.local_pool(1, 4, "fuzz")
    for channel in (*range(1, 40), 2**16, 2**32 - 1):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            client = ClientConnection(theirs.fileno(), "fuzz")
            (own,) = (client.open_channel(ReadyQueue(1), 0, pool, 1, IDENTITY) for _ in range(1))
            own.request(b"x")
            threads = Threads(client.read_loop, client.write_loop, lambda end=ours: receive_all(end))
            send_all(ours, encode_frame(kind, channel, b"", 0, 0, 1, IDENTITY))
            threads.join()
            assert own.poll()[0] is None
            own.release()
            client.forget_descriptor()
        has_no_place = kind is FrameKind.BUFFER_RESPONSE
        assert client.broken
        assert (f"channel {channel} has not asked for" in client.broken) == has_no_place
    pool.close()


@pytest.mark.parametrize("size", [0, -1, (16 << 20) + 1, 2**40])
def test_a_reader_with_impossible_buffers_is_refused_before_anything_is_made_for_him(
    world: World, stored: PartitionSource, size: int
) -> None:
    server = ServerConnection(0, "fuzz", stored)
    with pytest.raises(ValueError, match="are possible"):
        stored.open_view(msgspec.msgpack.encode(ReadRequest(partition_id(0), 0, size)), server, ReadyQueue(1), 0)


def check_data(channel: Any, index: int, numbers: list[int]) -> None:
    """What comes out is what was sent, from the first on; the last frame of all may be a stranger's, sealed well."""
    position = 0
    while True:
        buffer, kind, _ = channel.poll()
        if buffer is None:
            assert kind in (-1, 5)
            return
        content = buffer.to_bytes()
        buffer.recycle()
        if position < len(numbers):
            assert content[:8] == struct.pack("<II", index, numbers[position])
            assert content == content[:8] * (len(content) // 8)
        else:
            assert position == len(numbers), "more than one frame too many"
        position += 1
