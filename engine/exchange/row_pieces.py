"""RowPieces: rows larger than a buffer, put together from their fragments; the very wide ones one at a time.

    arrivals = Arrivals(ready.push_channel)     of a gate           pieces = RowPieces(index, arrivals)    of a channel
    while pieces.may_go_on(): pieces.add(buffer)* ─► pieces.take_row() ─► OversizedRow
    arrivals.let_go()                           the gate is asked for more: what it gave last has been handled

    channel 0   fragment ─► ...................... last ─► row ─► handled
    channel 1   fragment │ waits for channel 0                           │ ─► ...... last ─► row
                ├── turn of the process ────────────────────────────────┤├── the next one

A very wide row is in memory from its first fragment until somebody has put it aside or decoded it. So its gate has the
turn of the process for that time (``memory.wide_turns``), and its other channels with such a row wait with one fragment
each. Their producers are held back by credit, as by any slow consumer.

Invariants: nobody waits in a circle. A row whose first fragment is here has been encoded, and its writer takes no turn
before the last one has been handed over (``record_writer``).

Thread: the gate's; ``Arrivals.close`` any.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from engine.exchange.elements import OversizedRow
from engine.memory.wide_turns import WIDE_BYTES, turn

if TYPE_CHECKING:
    from engine.exchange.buffer_pool import Buffer

_SIZE_BYTES = 4


class Arrivals:
    """The very wide rows on their way to one gate. Args: push_channel: says that a channel is to be polled."""

    def __init__(self, push_channel: Callable[[int], None]) -> None:
        self._push_channel = push_channel
        self._turns = ExitStack()
        self._channel: int | None = None
        self._waiting: set[int] = set()
        #: whether a row is on its way or was given out last
        self.has_turn = False

    def may_go_on(self, channel: int, row_bytes: int) -> bool:
        """Return whether this channel is the one whose row is on its way; otherwise it is polled when it may be."""
        if self._channel is None:
            if not self.has_turn:
                self._turns.enter_context(turn(row_bytes))
                self.has_turn = True
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

    def let_go(self) -> None:
        """End the turn unless a row is on its way."""
        if self._channel is None:
            self.close()

    def close(self) -> None:
        """End the turn; idempotent."""
        self.has_turn = False
        self._turns.close()


class RowPieces:
    """What has come of a row, or of a batch that travels as bytes, on one channel."""

    def __init__(self, channel: int, arrivals: Arrivals) -> None:
        self._channel = channel
        self._arrivals = arrivals
        self._bytes = bytearray()
        self._row_bytes = 0

    def may_go_on(self) -> bool:
        """Return whether to add more now; otherwise the channel is pushed when it may go on."""
        return self._row_bytes < WIDE_BYTES or self._arrivals.may_go_on(self._channel, self._row_bytes)

    def add(self, buffer: Buffer, *, is_row: bool = True) -> None:
        """Copy a fragment and recycle its buffer."""
        try:
            with memoryview(buffer.segment) as content:
                if is_row and not self._bytes:  # a row begins with its size
                    self._row_bytes = int.from_bytes(content[:_SIZE_BYTES], "little")
                self._bytes += content[: buffer.size]
        finally:
            buffer.recycle()

    def take(self) -> bytearray:
        """Return what has come, and begin anew."""
        if self._row_bytes >= WIDE_BYTES:
            self._arrivals.arrived()
        self._row_bytes = 0
        taken, self._bytes = self._bytes, bytearray()
        return taken

    def take_row(self) -> OversizedRow:
        """Return the row, which is whole, and begin anew."""
        return OversizedRow(self.take())
