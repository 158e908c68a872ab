"""Frames as bytes: golden ones, and damage of every kind."""

from __future__ import annotations

import contextlib
import socket

import pytest

from engine.errors import PartitionConnectionError
from engine.rpc.credentials import Credentials
from engine.rpc.program import Program
from engine.transport.frames import HEADER_BYTES, FrameKind, check_frame_payload, decode_header, encode_frame
from engine.transport.greeting_channel import GreetingChannel
from engine.transport.handshake import Greeting, greet_as_reader, greet_as_writer
from tests.exchange.world import World

#: a change of these is a change of the format: FRAME_VERSION goes up with it
GOLDEN = {
    "add credit": (
        encode_frame(FrameKind.ADD_CREDIT, channel=7, amount=3),
        "445245590105000007000000000000000300000000000000000000000000000000000000840d30c7",
    ),
    "data": (
        encode_frame(FrameKind.BUFFER_RESPONSE, 1, b"rows", 2, 258, 5, 0x0102030405060708),
        "44524559010302000100000002010000050000000400000008070605040302014d099baf40347e3a726f7773",
    ),
    "error": (
        encode_frame(FrameKind.ERROR_RESPONSE, 9, b"gone", 3),
        "4452455901040300090000000000000000000000040000000000000000000000f2a91467d7183295676f6e65",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_frame_has_the_bytes_that_were_written_down(name: str) -> None:
    frame, expected = GOLDEN[name]
    assert frame.hex() == expected


def test_a_header_says_what_the_frame_was_made_of() -> None:
    frame = encode_frame(FrameKind.BUFFER_RESPONSE, 1, b"rows", 2, 258, 5, 0x0102030405060708)
    fields = decode_header(frame)
    del fields["payload_checksum"]
    assert fields == {
        "type": 3, "kind": 2, "channel": 1, "sequence": 258, "amount": 5, "size": 4, "identity": 0x0102030405060708,
    }  # fmt: skip
    assert check_frame_payload(frame[:HEADER_BYTES], frame[HEADER_BYTES:])


def test_every_flipped_bit_is_noticed() -> None:
    frame = encode_frame(FrameKind.BUFFER_RESPONSE, 1, b"some rows of a page", 0, 1, 2, 3)
    for bit in range(8 * len(frame)):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        if bit < 8 * HEADER_BYTES:
            with pytest.raises(ValueError, match=r"not a frame|version|damaged"):
                decode_header(damaged)
        else:
            assert not check_frame_payload(damaged[:HEADER_BYTES], damaged[HEADER_BYTES:])


def test_a_size_that_no_frame_may_have_is_refused_before_anything_is_received() -> None:
    with pytest.raises(ValueError, match="larger than is allowed"):
        decode_header(encode_frame(FrameKind.ERROR_RESPONSE, 1, bytes((64 << 10) + 1)))
    with pytest.raises(ValueError, match="larger than is allowed"):
        decode_header(encode_frame(FrameKind.BUFFER_RESPONSE, 1, bytes((16 << 20) + 1)))
    with pytest.raises(ValueError, match="damaged"):
        decode_header(encode_frame(200))


SECRET = Credentials(b"s" * 32)


@pytest.mark.parametrize(
    ("reader", "writer", "complaint"),
    [
        (("one", SECRET), ("one", SECRET), None),
        (("one", None), ("one", None), None),
        (("one", SECRET), ("two", SECRET), "closed"),
        (("one", Credentials(b"t" * 32)), ("one", SECRET), "another cluster secret"),
        (("one", SECRET), ("one", None), "another cluster secret"),
    ],
)
def test_both_sides_prove_that_they_belong_to_the_cluster(
    world: World, reader: tuple, writer: tuple, complaint: str | None
) -> None:
    ours, theirs = socket.socketpair()

    def answer() -> None:
        with theirs:
            greet_as_writer(GreetingChannel(theirs, 30), Greeting(*writer))

    world.run(answer)
    with ours:
        if complaint is None:
            greet_as_reader(GreetingChannel(ours, 30), Greeting(*reader))
        else:
            with pytest.raises(PartitionConnectionError, match=complaint):
                greet_as_reader(GreetingChannel(ours, 30), Greeting(*reader))
    world.join(60)
    assert bool(world.failures) == (complaint is not None)
    if complaint == "closed":
        assert "belongs to cluster 'one', not 'two'" in str(world.failures[0])


def test_a_reader_without_the_secret_is_refused(world: World) -> None:
    ours, theirs = socket.socketpair()

    def answer() -> None:
        with theirs:
            greet_as_writer(GreetingChannel(theirs, 30), Greeting("one", SECRET))

    world.run(answer)
    with ours, pytest.raises(PartitionConnectionError, match="closed"):
        greet_as_reader(GreetingChannel(ours, 30), Greeting("one", None))
    world.join(60)
    assert "secret" in str(world.failures[0])


OURS = Program("0.2.0", "aaaa1111", "here", "TaskManager")


@pytest.mark.parametrize("theirs", [Program("0.3.0", "aaaa1111", "there"), Program("0.2.0", "bbbb2222", "there"), None])
@pytest.mark.parametrize("reads", [True, False])
def test_both_sides_hear_that_the_other_one_has_another_version(
    world: World, theirs: Program | None, reads: bool
) -> None:
    own, other = Greeting("one", SECRET, OURS), Greeting("one", SECRET, theirs)
    near, far = socket.socketpair()

    def answer() -> None:
        with far:
            greet_as_writer(GreetingChannel(far, 30), other if reads else own)

    world.run(answer)
    with (
        near,
        contextlib.suppress(PartitionConnectionError)
        if not reads
        else pytest.raises(PartitionConnectionError) as refused,
    ):
        greet_as_reader(GreetingChannel(near, 30), own if reads else other)
    world.join(60)
    said = str(refused.value) if reads else str(world.failures[0])
    assert "the TaskManager on here has Drey 0.2.0 (protocol aaaa1111)" in said
    if theirs is None:
        assert "does not say which Drey it has" in said
    else:
        assert f"the process on there has Drey {theirs.version} (protocol {theirs.protocol})" in said
        assert not reads or world.failures, "the writer refuses, too"
