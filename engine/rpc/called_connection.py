"""CalledConnection: the called end of a connection of calls, which came as an HTTP request (``http_service``).

    frames ─► proof ─► time, epoch ─► message ─► handler of the endpoint, in the order of the frames ─► outcome, a frame

Nothing of a frame is decoded before its proof, and no message before its time and epoch are known to be good: so a
process whose clock is wrong is refused here, too. A call ends with
its handler; its deadline, its CANCEL, and the end of the connection cancel the handler. What is wrong with a frame ends
the connection: the caller hears how many frames were taken, and the refusal is counted.

Bounds: OPEN_MAX calls at a time; while the caller does not read its replies, no more calls are read. A connection on
which nothing happens is closed after a while.

Thread: the event loop only.

Held by: tests/rpc/test_calling_connection.py
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping
from typing import Final, cast

from engine.rpc.codec import MessageCodec
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.errors import ClockDifferenceError, EndpointUnreachableError, RemoteCallError, RpcTimeoutError
from engine.rpc.frames import (
    BROKEN,
    CALL,
    CANCEL,
    MESSAGE_LIMIT,
    REPLY,
    Call,
    FrameError,
    FrameReader,
    FrameWriter,
    parsed_call,
    parsed_short,
    short_payload,
)
from engine.rpc.greeting import Keys
from engine.rpc.http_messages import UpgradedConnection
from engine.rpc.refusals import REFUSALS, Reason

#: calls of one connection that are being answered at the same time
OPEN_MAX: Final = 1024
#: seconds until a connection is closed on which nothing happens; callers close theirs sooner
_IDLE_S: Final = 75.0
#: seconds for which what follows a wrong frame is dropped, so that its sender can read why
_LINGER_S: Final = 2.0


class CalledConnection(UpgradedConnection):
    """One connection.

    Args:
        endpoints: by name, as they are at the time of a call.
        address: of this process, for errors.
        caller: its address, for the record of refusals.
        check_time: raises ClockDifferenceError for the time of a call; None where calls prove nothing.
    """

    def __init__(
        self,
        endpoints: Mapping[str, RpcEndpoint],
        codec: MessageCodec,
        address: str,
        caller: str,
        keys: Keys,
        check_time: Callable[[int], None] | None,
    ) -> None:
        self._endpoints = endpoints
        self._codec = codec
        self._address = address
        self._caller = caller
        self._check_time = check_time
        self._reader, self._writer = FrameReader(keys[0]), FrameWriter(keys[1])
        #: the caller's principal is in it
        self._context = contextvars.copy_context()
        self._loop = asyncio.get_running_loop()
        #: handlers by the ids of their calls
        self._calls: dict[int, asyncio.Task[None]] = {}
        #: calls whose outcome the caller wants
        self._wanted: set[int] = set()
        self._is_broken = False
        self._is_ending = False
        self._used_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport
        self.closed = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._timer = self._loop.call_later(_IDLE_S, self._close_if_idle)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Cancel what is still being answered."""
        if self._timer is not None:
            self._timer.cancel()
        self._wanted.clear()
        for task in tuple(self._calls.values()):
            task.cancel()
        if not self.closed.done():
            self.closed.set_result(None)

    def pause_writing(self) -> None:
        """Read no more calls while replies are not read."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def end(self) -> None:
        """Begin no more calls, and close when the last one has ended."""
        self._is_ending = True
        self._close_if_ended()

    # ---- what comes ----

    def data_received(self, data: bytes) -> None:
        """Take the frames that are complete."""
        if self._is_broken:
            return
        self._used_s = self._loop.time()
        try:
            for payload in self._reader.feed(data):
                self._take(payload)
        except FrameError as error:
            self._break(error)

    def _take(self, payload: bytes) -> None:
        if payload[0] == CALL:
            self._begin(parsed_call(payload))
            return
        kind, number, _ = parsed_short(payload)
        if kind != CANCEL:
            raise FrameError(f"no caller sends frames of the kind {kind}")
        self._wanted.discard(number)
        task = self._calls.get(number)
        if task is not None:
            task.cancel()

    def _break(self, error: FrameError) -> None:
        """Tell the caller that no more can be read."""
        self._is_broken = True
        REFUSALS.note(Reason.WRONG_SECRET, self._caller, "a call", str(error))
        self._transport.write(self._writer.frame(short_payload(BROKEN, self._reader.count)))
        self._loop.call_later(_LINGER_S, self._transport.close)

    def _begin(self, call: Call) -> None:
        endpoint = self._endpoints.get(call.name)
        try:
            if self._check_time is not None:
                self._check_time(call.time_ms)
            if self._is_ending or endpoint is None:
                raise EndpointUnreachableError(f"nothing answers at {self._address}/{call.name[:100]}")
            if len(self._calls) >= OPEN_MAX:
                raise EndpointUnreachableError(f"{self._address} answers {OPEN_MAX} calls of this process already")
            endpoint.check_epoch(call.epoch)
            message = self._codec.decode(call.message)
        except Exception as error:
            if isinstance(error, ClockDifferenceError):
                REFUSALS.note(Reason.CLOCK, self._caller, f"a call of {call.name[:100]}", str(error))
            self._reply(call.id, self._codec.encode_error(error))
            return
        if call.id in self._calls:
            raise FrameError("two calls have one id")
        answering = self._answer(call, endpoint, message)
        task = self._context.run(self._loop.create_task, answering, name=f"call of {call.name}")
        self._calls[call.id] = task
        self._wanted.add(call.id)
        task.add_done_callback(lambda _, number=call.id: self._ended(number))  # type: ignore[misc]

    # ---- what is answered ----

    async def _answer(self, call: Call, endpoint: RpcEndpoint, message: object) -> None:
        try:
            async with asyncio.timeout(call.timeout_s) as limit:
                reply = self._codec.encode(await endpoint.dispatch(call.epoch, message))
        except TimeoutError as error:
            late = RpcTimeoutError(f"the call was not answered within {call.timeout_s} s")
            reply = self._codec.encode_error(late if limit.expired() else error)
        except Exception as error:
            reply = self._codec.encode_error(error)
        self._reply(call.id, reply)

    def _ended(self, number: int) -> None:
        del self._calls[number]
        if number in self._wanted:  # cancelled here, by what it waited for
            ended = EndpointUnreachableError(f"{self._address} has ended the call")
            self._reply(number, self._codec.encode_error(ended))
        self._close_if_ended()

    def _reply(self, number: int, reply: bytes) -> None:
        self._wanted.discard(number)
        if self._is_broken or self._transport.is_closing():
            return
        if len(reply) > MESSAGE_LIMIT:
            long = RemoteCallError(f"the reply has {len(reply)} bytes, at most {MESSAGE_LIMIT} are allowed")
            reply = self._codec.encode_error(long)
        self._used_s = self._loop.time()
        self._transport.write(self._writer.frame(short_payload(REPLY, number, reply)))

    def _close_if_ended(self) -> None:
        if self._is_ending and not self._calls:
            self._transport.close()

    def _close_if_idle(self) -> None:
        left_s = _IDLE_S if self._calls else self._used_s + _IDLE_S - self._loop.time()
        if left_s <= 0:
            self._transport.close()
        else:
            self._timer = self._loop.call_later(left_s, self._close_if_idle)
