"""Frames of a connection of calls: each is proved, and its proof is good once, at its place.

    length, 4 bytes │ payload │ HMAC-SHA256 over the number of the frame and the payload, 32 bytes (none: no secret)

    caller ─► CALL    id, epoch, milliseconds until the deadline (0: none), time, name of the endpoint, message
    caller ─► CANCEL  id
    called ─► REPLY   id, reply
    called ─► BROKEN  number of frames that were taken; the next one was changed on the way

Numbers count the frames of one direction from 0, and each direction has a key of its own (``connection_keys``), made
from the secret and from what both sides said when the connection began. So a frame that is changed, repeated, left
out, moved, sent back or taken from another connection has a wrong proof. No byte of it is looked at before that but
its length, which is bounded.

Held by: tests/rpc/test_frames.py
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.errors import EngineError

#: largest message: a JobGraph or a task's descriptor with the functions in it
MESSAGE_LIMIT = 64 * 1024 * 1024
#: bytes of a payload beside its message, at most
_OVERHEAD_MAX: Final = 1024
#: longest name of an endpoint, bytes
_NAME_MAX: Final = 255

_LENGTH: Final = struct.Struct(">I")
_NUMBER: Final = struct.Struct(">Q")
#: kind, id, epoch, milliseconds, time, length of the name
_CALL: Final = struct.Struct(">BQqqqB")
#: kind, id or number
_SHORT: Final = struct.Struct(">BQ")
_PROOF_BYTES: Final = 32

CALL, CANCEL, REPLY, BROKEN = range(1, 5)


class FrameError(EngineError):
    """A frame is not what the other side sent, or not of this protocol: nothing that follows can be read."""


class Call(NamedTuple):
    """A call as it travels."""

    id: int
    epoch: int
    timeout_s: float | None
    name: str
    message: bytes
    #: wall clock of the caller, ms since 1970
    time_ms: int = 0


class _Proofs:
    """Proofs of the frames of one direction. The state that the key makes is kept: it takes as long as a proof."""

    def __init__(self, key: bytes) -> None:
        self._begun = hmac.new(key, digestmod="sha256")

    def of(self, number: int, payload: bytes) -> bytes:
        proof = self._begun.copy()
        proof.update(_NUMBER.pack(number))
        proof.update(payload)
        return proof.digest()


class FrameWriter:
    """Makes frames of payloads. ``key``: of this direction; None without a secret."""

    def __init__(self, key: bytes | None) -> None:
        self._proofs = None if key is None else _Proofs(key)
        self.count = 0

    def frame(self, payload: bytes) -> bytes:
        """Return the bytes of the next frame."""
        number, self.count = self.count, self.count + 1
        proof = b"" if self._proofs is None else self._proofs.of(number, payload)
        return _LENGTH.pack(len(payload)) + payload + proof


class FrameReader:
    """Takes frames apart, as their bytes come."""

    def __init__(self, key: bytes | None) -> None:
        self._proofs = None if key is None else _Proofs(key)
        self._buffer = bytearray()
        #: frames that were taken
        self.count = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the payloads that are complete now; FrameError at the first one that is wrong."""
        buffer, proof_bytes = self._buffer, 0 if self._proofs is None else _PROOF_BYTES
        buffer += data
        at = 0
        try:
            while len(buffer) - at >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(buffer, at)
                if not 0 < length <= MESSAGE_LIMIT + _OVERHEAD_MAX:
                    raise FrameError(f"a frame has {length} bytes, at most {MESSAGE_LIMIT} are allowed")
                begin = at + _LENGTH.size
                end = begin + length
                if len(buffer) < end + proof_bytes:
                    break
                payload = bytes(memoryview(buffer)[begin:end])
                self._check(payload, buffer[end : end + proof_bytes])
                self.count += 1
                at = end + proof_bytes
                yield payload
        finally:
            del buffer[:at]

    def _check(self, payload: bytes, proof: bytearray) -> None:
        if self._proofs is not None and not hmac.compare_digest(self._proofs.of(self.count, payload), proof):
            raise FrameError("a frame was changed on the way, or it comes from a process without the cluster's secret")


def call_payload(call: Call) -> bytes:
    """Return the payload of a call."""
    name = call.name.encode("utf-8", "surrogateescape")[:_NAME_MAX]
    timeout_ms = 0 if call.timeout_s is None else max(1, int(call.timeout_s * 1000))
    return _CALL.pack(CALL, call.id, call.epoch, timeout_ms, call.time_ms, len(name)) + name + call.message


def parsed_call(payload: bytes) -> Call:
    """Return the call of a payload; FrameError when it is none."""
    try:
        _, number, epoch, timeout_ms, time_ms, name_bytes = _CALL.unpack_from(payload)
        end = _CALL.size + name_bytes
        name = payload[_CALL.size : end].decode("utf-8", "surrogateescape")
    except struct.error as error:
        raise FrameError(f"a frame is no call: {error}") from error
    if len(payload) < end or timeout_ms < 0:
        raise FrameError("a frame is no call")
    return Call(number, epoch, timeout_ms / 1000 if timeout_ms else None, name, payload[end:], time_ms)


def short_payload(kind: int, number: int, rest: bytes = b"") -> bytes:
    """Return the payload of anything but a call."""
    return _SHORT.pack(kind, number) + rest


def parsed_short(payload: bytes) -> tuple[int, int, bytes]:
    """Return kind, id or number, and what follows; FrameError when it is too short."""
    try:
        kind, number = _SHORT.unpack_from(payload)
    except struct.error as error:
        raise FrameError(f"a frame is too short: {error}") from error
    return kind, number, payload[_SHORT.size :]
