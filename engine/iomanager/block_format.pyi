from typing_extensions import Buffer

from engine.errors import CorruptBlockError
from engine.iomanager.spill_identity import SpillIdentity

HEADER_BYTES: int

def encode_block(
    payload: Buffer, identity: SpillIdentity, file_number: int, sequence: int, compress: bool
) -> bytes: ...
def decode_block(
    data: Buffer, identity: SpillIdentity, file_number: int, sequence: int, path: str, offset: int
) -> bytes: ...
def corrupt_block(path: str, offset: int, sequence: int, fault: int, there: str = "") -> CorruptBlockError: ...
