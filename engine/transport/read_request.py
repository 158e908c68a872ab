"""Read requests: what a consumer asks of a producer's process, and how a refusal travels, as payloads of frames.

msgpack and plain text: nothing that comes from a peer is code.

    ReadRequest ──► PartitionRequest          error_response(error) ──► ErrorResponse ──► error_of(code, text)

Held by: tests/transport/test_remote_channels.py
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec

from engine.errors import (
    PartitionConnectionError,
    PartitionNotFoundError,
    PartitionReleasedError,
    ProducerFailedError,
    ResourceError,
)
from engine.graph.deployment import KeyRange
from engine.graph.subpartition_share import WHOLE
from engine.ids import ResultPartitionId

_TEXT_BYTES_MAX: Final = 32 << 10


class ReadRequest(msgspec.Struct, array_like=True, frozen=True):
    """Payload of a PartitionRequest; the partition's id names the producer's attempt."""

    partition: ResultPartitionId
    subpartition_index: int
    #: bytes of the consumer's buffers
    buffer_size: int
    #: range of keys that is wanted of sorted runs
    key_range: KeyRange | None = None
    #: part of the subpartition, [begin, end) of PARTS
    part: tuple[int, int] = WHOLE


class ErrorCode(IntEnum):
    """The reasons for which a channel ends early. BROKEN never travels."""

    BROKEN = -1
    CANCELLED = 1
    NOT_FOUND = 2
    RELEASED = 3
    PRODUCER_FAILED = 4
    OTHER = 5


_CLASSES: Final[dict[ErrorCode, type[ResourceError]]] = {
    ErrorCode.NOT_FOUND: PartitionNotFoundError,
    ErrorCode.RELEASED: PartitionReleasedError,
    ErrorCode.PRODUCER_FAILED: ProducerFailedError,
}


def error_response(error: Exception) -> tuple[int, bytes]:
    """Return code and text of an error, as they travel."""
    text = str(error) or type(error).__name__
    for code, error_class in _CLASSES.items():
        if isinstance(error, error_class):
            return code, text.encode()[:_TEXT_BYTES_MAX]
    return ErrorCode.OTHER, f"{type(error).__name__}: {text}".encode()[:_TEXT_BYTES_MAX]


def error_of(code: int, text: str, partition: ResultPartitionId, peer: str) -> ResourceError:
    """Return the consumer's error: what the producer's process said, or what happened to the connection."""
    if code == ErrorCode.BROKEN:
        return PartitionConnectionError(f"reading {partition} from {peer}: {text}")
    error_class = next((named for known, named in _CLASSES.items() if known == code), ResourceError)
    return error_class(f"{text} (at {peer})")
