"""The first four frames of a data connection: both sides name the cluster and prove that they know its secret.

    reader (opened the connection)            writer (holds the partitions)
    Hello 1  cluster, challenge      ──────►
                                     ◄──────  Hello 2  cluster, challenge, proof over both challenges
    Hello 3  proof                   ──────►
                                     ◄──────  Hello 4  accepted
Nothing is read or allocated for an unproved peer beyond one small frame, in bounded time. Without a secret (one
process, tests, loopback) the proofs are empty and only the cluster's name is compared.
"""

from __future__ import annotations

import socket
from typing import Final

import msgspec

from engine.errors import EngineError, PartitionConnectionError
from engine.exchange.frames import HEADER_BYTES, FrameKind, check_frame_payload, decode_header, encode_frame
from engine.rpc.credentials import Credentials

#: seconds for all four frames
HANDSHAKE_S: Final = 10.0
_HELLO_BYTES_MAX: Final = 1024
_READER: Final = "data-reader"
_WRITER: Final = "data-writer"


class Hello(msgspec.Struct, array_like=True):
    """Payload of a Hello."""

    cluster: str = ""
    challenge: bytes = b""
    proof: bytes = b""


def greet_as_reader(connection: socket.socket, cluster: str, credentials: Credentials | None) -> None:
    """Prove this side to the writer and have it prove itself.

    Raises:
        PartitionConnectionError: the other side is of another cluster, or no data server.
    """
    own = Credentials.challenge()
    _send(connection, 1, Hello(cluster, own))
    answer = _receive(connection, 2)
    _check_cluster(cluster, answer)
    if credentials is not None:
        _check(credentials, _WRITER, own, answer)
        _send(connection, 3, Hello(proof=credentials.prove(_READER, own, answer.challenge)))
    else:
        _send(connection, 3, Hello())
    _receive(connection, 4)


def greet_as_writer(connection: socket.socket, cluster: str, credentials: Credentials | None) -> None:
    """Let the reader prove itself; the same with the roles exchanged."""
    own = Credentials.challenge()
    greeting = _receive(connection, 1)
    _check_cluster(cluster, greeting)
    proof = b"" if credentials is None else credentials.prove(_WRITER, own, greeting.challenge)
    _send(connection, 2, Hello(cluster, own, proof))
    answer = _receive(connection, 3)
    if credentials is not None:
        answer.challenge = greeting.challenge
        _check(credentials, _READER, own, answer)
    _send(connection, 4, Hello())


def _check_cluster(cluster: str, hello: Hello) -> None:
    if hello.cluster != cluster:
        raise PartitionConnectionError(f"the other side belongs to cluster {hello.cluster!r}, not {cluster!r}")


def _check(credentials: Credentials, other_role: str, own: bytes, hello: Hello) -> None:
    try:
        credentials.check_proof(other_role, own, hello.challenge, hello.proof)
    except EngineError as error:
        raise PartitionConnectionError(str(error)) from error


def _send(connection: socket.socket, step: int, hello: Hello) -> None:
    connection.sendall(encode_frame(FrameKind.HELLO, payload=msgspec.msgpack.encode(hello), kind=step))


def _receive(connection: socket.socket, step: int) -> Hello:
    header = _receive_exactly(connection, HEADER_BYTES)
    try:
        fields = decode_header(header)
        if fields["type"] != FrameKind.HELLO or fields["kind"] != step or fields["size"] > _HELLO_BYTES_MAX:
            raise PartitionConnectionError("the other side does not greet as a data connection does")
        payload = _receive_exactly(connection, fields["size"])
        if not check_frame_payload(header, payload):
            raise PartitionConnectionError("the other side's greeting is damaged")
        return msgspec.msgpack.decode(payload, type=Hello)
    except (ValueError, msgspec.MsgspecError) as error:
        raise PartitionConnectionError(f"the other side's greeting cannot be read: {error}") from error


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        piece = connection.recv(size - len(parts))
        if not piece:
            raise PartitionConnectionError("the other side closed the connection instead of greeting")
        parts += piece
    return bytes(parts)
