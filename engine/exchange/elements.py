"""Elements that an input gate returns, and the event at the end of a partition.

pyarrow.RecordBatch    FORWARD and BROADCAST: by reference inside one process, as bytes where it was stored or is sent
RowPage                a Buffer full of whole binary rows; its receiver recycles it, exactly once
OversizedRow           one row larger than a buffer, put together from its fragments
END_OF_PARTITION       inside the room only: last element of every subpartition

Held by: tests/exchange/test_row_pieces.py
"""

from __future__ import annotations

from typing import Final, TypeAlias

import pyarrow as pa

from engine.exchange.buffer_pool import Buffer

#: a page of rows is the buffer that the producer filled: fields segment and size, method recycle()
RowPage = Buffer


class OversizedRow:
    """One row that is larger than a network buffer.

    ``buffer`` holds exactly the row's bytes, aligned to 8. Nothing needs to be recycled.
    """

    __slots__ = ("buffer",)

    def __init__(self, buffer: bytearray) -> None:
        self.buffer = buffer

    @property
    def size(self) -> int:
        """Bytes of the row."""
        return len(self.buffer)

    def take(self) -> bytearray:
        """Return the bytes and forget them: a very wide row is not kept while the next one is on its way."""
        taken, self.buffer = self.buffer, bytearray()
        return taken


class EndOfPartitionEvent:
    """The end of a partition. There is one instance: END_OF_PARTITION."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "END_OF_PARTITION"


END_OF_PARTITION: Final = EndOfPartitionEvent()

#: size from which the writer of a batch by reference waits until the batch has been used
LARGE_BYTES: Final = 8 << 20

Element: TypeAlias = pa.RecordBatch | Buffer | OversizedRow
