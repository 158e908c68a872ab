"""CallingConnection: the caller's end of a connection of calls to one process, kept from call to call.

    call ─► waits for the greeting, in order ─► frame ─► ... ─► its reply, whatever came before it
                                                        └─► given up: CANCEL

Calls leave in the order in which they were made, also those that were made before the connection was there. Many are
open at a time. When the connection ends, all of them hear of it at once. A call whose frame was not taken, since it or
one before it was changed on the way, was not begun and hears that.

A connection that is refused stays until the calls that waited for it have heard so, each in its turn, and a call that
is made meanwhile hears it behind them: in this order they may go another way.

A connection from which nothing comes while a call waits until its deadline may be dead without a sign of it:
it takes no further calls, and ends with those that it has. One that is not used for a while is closed.

Thread: the event loop only.

Held by: tests/rpc/test_calling_connection.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from engine.rpc.frames import (
    BROKEN,
    CANCEL,
    REPLY,
    Call,
    FrameError,
    FrameReader,
    FrameWriter,
    call_payload,
    parsed_short,
    short_payload,
)
from engine.rpc.greeting import Asked, Greeted, greet
from engine.rpc.http_messages import RefusedAnswerError

#: seconds until a connection that is not used is closed: less than the other side's
_IDLE_S: Final = 15.0


class NotBegunError(ConnectionError):
    """The call did not reach its handler."""


class CallingConnection(asyncio.Protocol):
    """One connection, which begins at once.

    Args:
        on_retired: told once, when it takes no further calls.
    """

    def __init__(self, asked: Asked, on_retired: Callable[[CallingConnection], None]) -> None:
        self._on_retired = on_retired
        self._credentials = asked.credentials
        self._loop = asyncio.get_running_loop()
        self._greeted: Greeted | None = None
        self._reader: FrameReader
        self._writer: FrameWriter
        #: payloads of calls that were made before the greeting's end, in order
        self._unsent: dict[int, bytes] = {}
        self._open: dict[int, _Open] = {}
        self._last_id = 0
        #: times at which something came
        self._heard_count = 0
        self._is_retired = False
        self._refusal: RefusedAnswerError | None = None
        self._used_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._greeting = self._loop.create_task(self._greet(asked), name=f"connection to {asked.authority}")
        #: future that is done when nothing is left of the connection
        self.ended: asyncio.Future[None] = self._loop.create_future()

    # ---- calls ----

    async def call(self, name: str, epoch: int, message: bytes, timeout_s: float | None) -> bytes:
        """Return the reply.

        Raises:
            TimeoutError: the deadline has passed.
            NotBegunError: it may be sent again.
            RefusedAnswerError: the other process takes no connection of this one.
            OSError: the connection is not there, or has ended, which says nothing of the call.
        """
        self._last_id = number = self._last_id + 1
        reply: asyncio.Future[bytes] = self._loop.create_future()
        time_ms = 0 if self._credentials is None else self._credentials.now_ms()
        payload = call_payload(Call(number, epoch, timeout_s, name, message, time_ms))
        frame_number = self._send(number, payload)
        self._open[number] = _Open(reply, frame_number, self._heard_count)
        timer = None if timeout_s is None else self._loop.call_later(timeout_s, self._too_late, number)
        try:
            if self._refusal is not None:
                await asyncio.sleep(0)  # behind those that have waited
                raise self._refusal
            return await reply
        finally:
            if timer is not None:
                timer.cancel()
            if self._open.pop(number, None) is not None:  # the caller was cancelled
                self._give_up(number)
            self._end_if_unused()

    def _send(self, number: int, payload: bytes) -> int:
        """Send a payload, or keep it until the greeting is over; return the number of its frame, -1 for none yet."""
        if self._greeted is None:
            self._unsent[number] = payload
            return -1
        self._used_s = self._loop.time()
        self._greeted.stream.transport.write(self._writer.frame(payload))
        return self._writer.count - 1

    def _give_up(self, number: int) -> None:
        """Have the other side end a call."""
        if self._unsent.pop(number, None) is None and self._greeted is not None and not self.ended.done():
            self._greeted.stream.transport.write(self._writer.frame(short_payload(CANCEL, number)))

    def _too_late(self, number: int) -> None:
        call = self._open.pop(number, None)
        if call is None or call.reply.done():
            return
        call.reply.set_exception(TimeoutError())
        self._give_up(number)
        if call.heard_count == self._heard_count:
            self._retire()

    # ---- the connection ----

    async def _greet(self, asked: Asked) -> None:
        try:
            self._greeted = await greet(asked)
        except asyncio.CancelledError:
            self._end(ConnectionError("this process has closed the connection"))
            raise
        except RefusedAnswerError as error:
            self._refuse(error)
            return
        except Exception as error:
            self._end(error)
            return
        stream, keys = self._greeted
        self._writer, self._reader = FrameWriter(keys[0]), FrameReader(keys[1])
        stream.transport.set_protocol(self)
        if stream.transport.is_closing():
            self.connection_lost(None)
            return
        self._timer = self._loop.call_later(_IDLE_S, self._close_if_idle)
        unsent, self._unsent = self._unsent, {}
        for number, payload in unsent.items():
            self._open[number] = self._open[number]._replace(frame_number=self._send(number, payload))
        self._end_if_unused()

    def _refuse(self, error: RefusedAnswerError) -> None:
        self._refusal = error
        self._unsent.clear()
        for call in self._open.values():
            if not call.reply.done():
                call.reply.set_exception(error)
        self._end_if_unused()

    def data_received(self, data: bytes) -> None:
        """Take the replies that are complete."""
        self._heard_count += 1
        self._used_s = self._loop.time()
        try:
            for payload in self._reader.feed(data):
                self._take(*parsed_short(payload))
        except FrameError as error:
            self._end(ConnectionError(f"the connection broke: {error}"))

    def _take(self, kind: int, number: int, rest: bytes) -> None:
        if kind == BROKEN:
            for call in self._open.values():
                if call.frame_number >= number and not call.reply.done():
                    call.reply.set_exception(NotBegunError("the other side cannot read the call"))
            self._end(ConnectionError("the connection broke: the other side could not read it"))
        elif kind != REPLY:
            raise FrameError(f"no called side sends frames of the kind {kind}")
        else:
            call_or_none = self._open.pop(number, None)
            if call_or_none is not None and not call_or_none.reply.done():
                call_or_none.reply.set_result(rest)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell all calls."""
        self._end(exc if isinstance(exc, OSError) else ConnectionError("the connection broke"))

    def close(self) -> None:
        """End it, and all calls with it."""
        self._greeting.cancel()
        self._end(ConnectionError("this process has closed the connection"))

    def _end(self, error: Exception) -> None:
        if self.ended.done():
            return
        self.ended.set_result(None)
        self._retire()
        if self._timer is not None:
            self._timer.cancel()
        self._unsent.clear()
        calls = tuple(self._open.values())
        self._open.clear()
        for call in calls:
            if not call.reply.done():
                call.reply.set_exception(error)
        if self._greeted is not None:
            self._greeted.stream.transport.abort()

    def _retire(self) -> None:
        if not self._is_retired:
            self._is_retired = True
            self._on_retired(self)
            self._end_if_unused()

    def _end_if_unused(self) -> None:
        if (self._is_retired or self._refusal is not None) and not self._open:
            self.close()

    def _close_if_idle(self) -> None:
        left_s = _IDLE_S if self._open else self._used_s + _IDLE_S - self._loop.time()
        if left_s <= 0:
            self.close()
        else:
            self._timer = self._loop.call_later(left_s, self._close_if_idle)


class _Open(NamedTuple):
    """A call that waits for its reply."""

    reply: asyncio.Future[bytes]
    #: number of its frame; -1: it has none yet
    frame_number: int
    #: times at which something had come, when it was made
    heard_count: int
