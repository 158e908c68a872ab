from typing_extensions import Buffer

from engine.records.row_codec import RowCodec

def rows_outside(codec: RowCodec, buffer: Buffer) -> bytes | None:
    """Return the rows of a buffer with their wide values at the codec's owner, None: as they are."""

def rows_inside(codec: RowCodec, buffer: Buffer) -> bytes:
    """Return the rows of a buffer with all values inside."""
