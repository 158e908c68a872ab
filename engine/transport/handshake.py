"""The first four frames of a data connection: both sides name the cluster and prove that they know its secret.

    reader (opened the connection)            writer (holds the partitions)
    Hello 1  cluster, challenge      ──────►
                                     ◄──────  Hello 2  cluster, challenge, proof over both challenges
    Hello 3  proof                   ──────►
                                     ◄──────  Hello 4  accepted
Nothing is read or allocated for an unproved peer beyond one small frame, in bounded time (greeting_channel.py, which
puts TLS under them where the cluster has certificates). Without a secret (one
process, tests, loopback) the proofs are empty and only the cluster's name is compared.

Held by: tests/transport/test_frames.py
"""

from __future__ import annotations

from typing import Final

import msgspec

from engine.errors import EngineError, PartitionConnectionError
from engine.rpc.credentials import Credentials
from engine.transport.frames import HEADER_BYTES, FrameKind, check_frame_payload, decode_header, encode_frame
from engine.transport.greeting_channel import GreetingChannel, completed

#: seconds for TLS and all four frames
HANDSHAKE_S: Final = 10.0
_HELLO_BYTES_MAX: Final = 1024
_READER: Final = "data-reader"
_WRITER: Final = "data-writer"


class Hello(msgspec.Struct, array_like=True):
    """Payload of a Hello."""

    cluster: str = ""
    challenge: bytes = b""
    proof: bytes = b""


def greet_as_reader(channel: GreetingChannel, cluster: str, credentials: Credentials | None) -> None:
    """Prove this side to the writer and have it prove itself, over a channel that blocks.

    Raises:
        PartitionConnectionError: the other side is of another cluster, or no data server.
    """
    completed(_greeting_as_reader(channel, cluster, credentials))


def greet_as_writer(channel: GreetingChannel, cluster: str, credentials: Credentials | None) -> None:
    """Let the reader prove itself; the same with the roles exchanged."""
    completed(greeting_as_writer(channel, cluster, credentials))


async def _greeting_as_reader(channel: GreetingChannel, cluster: str, credentials: Credentials | None) -> None:
    own = Credentials.challenge()
    await _send(channel, 1, Hello(cluster, own))
    answer = await _receive(channel, 2)
    _check_cluster(cluster, answer)
    if credentials is not None:
        _check(credentials, _WRITER, own, answer)
        await _send(channel, 3, Hello(proof=credentials.prove(_READER, own, answer.challenge)))
    else:
        await _send(channel, 3, Hello())
    await _receive(channel, 4)


async def greeting_as_writer(channel: GreetingChannel, cluster: str, credentials: Credentials | None) -> None:
    """As greet_as_writer, for who waits in an event loop."""
    own = Credentials.challenge()
    greeting = await _receive(channel, 1)
    _check_cluster(cluster, greeting)
    proof = b"" if credentials is None else credentials.prove(_WRITER, own, greeting.challenge)
    await _send(channel, 2, Hello(cluster, own, proof))
    answer = await _receive(channel, 3)
    if credentials is not None:
        answer.challenge = greeting.challenge
        _check(credentials, _READER, own, answer)
    await _send(channel, 4, Hello())


def _check_cluster(cluster: str, hello: Hello) -> None:
    if hello.cluster != cluster:
        raise PartitionConnectionError(f"the other side belongs to cluster {hello.cluster!r}, not {cluster!r}")


def _check(credentials: Credentials, other_role: str, own: bytes, hello: Hello) -> None:
    try:
        credentials.check_proof(other_role, own, hello.challenge, hello.proof)
    except EngineError as error:
        raise PartitionConnectionError(str(error)) from error


async def _send(channel: GreetingChannel, step: int, hello: Hello) -> None:
    await channel.send(encode_frame(FrameKind.HELLO, payload=msgspec.msgpack.encode(hello), kind=step))


async def _receive(channel: GreetingChannel, step: int) -> Hello:
    header = await channel.receive(HEADER_BYTES)
    try:
        fields = decode_header(header)
        if fields["type"] != FrameKind.HELLO or fields["kind"] != step or fields["size"] > _HELLO_BYTES_MAX:
            raise PartitionConnectionError("the other side does not greet as a data connection does")
        payload = await channel.receive(fields["size"])
        if not check_frame_payload(header, payload):
            raise PartitionConnectionError("the other side's greeting is damaged")
        return msgspec.msgpack.decode(payload, type=Hello)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise PartitionConnectionError(f"the other side's greeting cannot be read: {error}") from error
