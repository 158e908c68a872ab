"""The first four frames of a data connection: both sides name the cluster and prove that they know its secret.

    reader (opened the connection)            writer (holds the partitions)
    Hello 1  cluster, challenge      ──────►
                                     ◄──────  Hello 2  cluster, challenge, proof over both challenges
    Hello 3  proof, program          ──────►
                                     ◄──────  Hello 4  program; it accepts

Nothing is read or allocated for an unproved peer beyond one small frame, in bounded time (greeting_channel.py, which
puts TLS under them where the cluster has certificates). Without a secret (one process, tests, loopback) the proofs are
empty, and only the cluster's name and the programs are compared. A peer without proof does not learn which program this
is; a writer that refuses another program has said its own, so that both sides know why.

Held by: tests/transport/test_frames.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from engine.errors import EngineError, PartitionConnectionError, VersionMismatchError
from engine.rpc.credentials import Credentials
from engine.rpc.errors import AccessDeniedError
from engine.rpc.program import Program
from engine.rpc.refusals import Reason
from engine.transport.frames import HEADER_BYTES, FrameKind, check_frame_payload, decode_header, encode_frame
from engine.transport.greeting_channel import GreetingChannel, completed

#: time limit of TLS and all four frames, seconds
HANDSHAKE_S: Final = 10.0
_HELLO_BYTES_MAX: Final = 1024
_READER: Final = "data-reader"
_WRITER: Final = "data-writer"


#: reason for which a connection counts as refused, by the error of its refusal
REASONS: Final[Mapping[type[BaseException | None], Reason]] = {
    AccessDeniedError: Reason.WRONG_SECRET,
    VersionMismatchError: Reason.VERSION,
}


class Hello(msgspec.Struct, array_like=True):
    """Payload of a Hello."""

    cluster: str = ""
    challenge: bytes = b""
    proof: bytes = b""
    #: header of a Program
    program: str = ""


@dataclass(frozen=True)
class Greeting:
    """The greeting of one side: the cluster's name, its secret, the program."""

    cluster: str
    credentials: Credentials | None = None
    program: Program | None = None

    def check_cluster(self, hello: Hello) -> None:
        """Raise PartitionConnectionError unless the other side is of this cluster."""
        if hello.cluster != self.cluster:
            raise PartitionConnectionError(f"the other side belongs to cluster {hello.cluster!r}, not {self.cluster!r}")

    @property
    def said(self) -> str:
        """The program as this side sends it."""
        return "" if self.program is None else self.program.header

    def check_program(self, hello: Hello) -> None:
        """Raise PartitionConnectionError unless the other side runs the same program."""
        try:
            if self.program is not None:
                self.program.check(hello.program, "the other end of the connection")
        except VersionMismatchError as error:
            raise PartitionConnectionError(str(error)) from error


def greet_as_reader(channel: GreetingChannel, greeting: Greeting) -> None:
    """Prove this side to the writer and have it prove itself, over a channel that blocks.

    Raises:
        PartitionConnectionError: the other side is of another cluster, or no data server.
    """
    completed(_greeting_as_reader(channel, greeting))


def greet_as_writer(channel: GreetingChannel, greeting: Greeting) -> None:
    """Greet a reader, which proves itself first."""
    completed(greeting_as_writer(channel, greeting))


async def _greeting_as_reader(channel: GreetingChannel, greeting: Greeting) -> None:
    own, credentials, proof = Credentials.challenge(), greeting.credentials, b""
    await _send(channel, 1, Hello(greeting.cluster, own))
    answer = await _receive(channel, 2)
    greeting.check_cluster(answer)
    if credentials is not None:
        _check(credentials, _WRITER, own, answer)
        proof = credentials.prove(_READER, own, answer.challenge)
    await _send(channel, 3, Hello(proof=proof, program=greeting.said))
    greeting.check_program(await _receive(channel, 4))


async def greeting_as_writer(channel: GreetingChannel, greeting: Greeting) -> None:
    """Greet as greet_as_writer, for a caller in an event loop."""
    own, credentials = Credentials.challenge(), greeting.credentials
    first = await _receive(channel, 1)
    greeting.check_cluster(first)
    proof = b"" if credentials is None else credentials.prove(_WRITER, own, first.challenge)
    await _send(channel, 2, Hello(greeting.cluster, own, proof))
    answer = await _receive(channel, 3)
    if credentials is not None:
        answer.challenge = first.challenge
        _check(credentials, _READER, own, answer)
    await _send(channel, 4, Hello(program=greeting.said))
    greeting.check_program(answer)


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
