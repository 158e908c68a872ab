"""RowPieces: rows larger than a buffer, put together from their fragments; very wide ones one at a time.

    arrivals = Arrivals(ready.push_channel)     of a gate           pieces = RowPieces(index, arrivals)    of a channel
    while pieces.may_go_on(): pieces.add(buffer)* ─► pieces.take_row() ─► OversizedRow

    channel 0   fragment ─► ...................... last ─► row
    channel 1   fragment │ waits for channel 0           │ ─► ...... last ─► row

While a very wide row is put together from one channel, the gate's other channels with such a row wait, with one
fragment each, so a gate holds one such row. Their producers are held back by credit, as by any slow consumer.

Invariants: there is no circular wait. A row whose first fragment is here has been encoded, and its writer waits for
nothing but buffers until the last one has been sent (``record_writer``).

Thread: the gate's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from engine.exchange.elements import OversizedRow
from engine.exchange.piece_bytes import add_piece

if TYPE_CHECKING:
    from engine.exchange.buffer_pool import Buffer

_SIZE_BYTES = 4
#: size from which a row is combined alone
WIDE_BYTES: Final = 8 << 20


class Arrivals:
    """The very wide rows on their way to one gate. Args: push_channel: says that a channel is to be polled."""

    def __init__(self, push_channel: Callable[[int], None]) -> None:
        self._push_channel = push_channel
        self._channel: int | None = None
        self._waiting: set[int] = set()

    def may_go_on(self, channel: int) -> bool:
        """Return whether this channel is the one whose row is on its way; otherwise it is polled when it may be."""
        if self._channel is None:
            self._channel = channel
        elif self._channel != channel:
            self._waiting.add(channel)
            return False
        return True

    def arrived(self) -> None:
        """Let another channel go on: this one's row is whole."""
        self._channel = None
        waiting, self._waiting = self._waiting, set()
        for channel in sorted(waiting):
            self._push_channel(channel)


class RowPieces:
    """The pieces of a row, or of a batch that travels as bytes, so far, on one channel."""

    __slots__ = ("_arrivals", "_bytes", "_channel", "_row_bytes")

    def __init__(self, channel: int, arrivals: Arrivals) -> None:
        self._channel = channel
        self._arrivals = arrivals
        self._bytes = bytearray()
        self._row_bytes = 0

    def may_go_on(self) -> bool:
        """Return whether to add more now; otherwise the channel is pushed when it may go on."""
        return self._row_bytes < WIDE_BYTES or self._arrivals.may_go_on(self._channel)

    def add(self, buffer: Buffer, *, is_row: bool = True) -> None:
        """Copy a fragment and recycle its buffer."""
        begins_row = is_row and not self._bytes
        try:
            add_piece(self._bytes, buffer)
        finally:
            buffer.recycle()
        if begins_row:  # with its size
            self._row_bytes = int.from_bytes(self._bytes[:_SIZE_BYTES], "little")

    def take(self) -> bytearray:
        """Return the pieces, and begin anew."""
        if self._row_bytes >= WIDE_BYTES:
            self._arrivals.arrived()
        self._row_bytes = 0
        taken, self._bytes = self._bytes, bytearray()
        return taken

    def take_row(self) -> OversizedRow:
        """Return the row, which is whole, and begin anew."""
        return OversizedRow(self.take())
