from enum import IntEnum

from typing_extensions import Buffer

HEADER_BYTES: int
CONTROL_BYTES_MAX: int

class FrameKind(IntEnum):
    HELLO = 1
    PARTITION_REQUEST = 2
    BUFFER_RESPONSE = 3
    ERROR_RESPONSE = 4
    ADD_CREDIT = 5
    BACKLOG_ANNOUNCEMENT = 6
    CANCEL_REQUEST = 7
    CLOSE_REQUEST = 8
    AVAILABLE = 9

def encode_frame(
    frame_type: int,
    channel: int = 0,
    payload: Buffer | None = None,
    kind: int = 0,
    sequence: int = 0,
    amount: int = 0,
    identity: int = 0,
) -> bytes: ...
def decode_header(data: Buffer) -> dict[str, int]: ...
def check_frame_payload(header: Buffer, payload: Buffer) -> bool: ...
