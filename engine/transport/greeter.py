"""Greeter: accepts data connections and authenticates peers, all in one thread.

    listener ─┐            ┌─► greet(connection, name) ─► on_proved: a thread of its own, by its owner
    listener ─┴─► accept ──┤
                           └─► too many unproved peers: the oldest one is dropped

    one event loop: an unproved peer costs a socket and a coroutine

A real peer proves itself within milliseconds, so that it is never among the oldest while others only hold their
connections open; a silent peer is dropped when its greeting has lasted too long, too (greeting_channel.py).

Source: sshd's MaxStartups, which drops at random; by age is ours.
Held by: tests/transport/test_strangers.py
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from engine.network_address import address_text, canonical_host

_log = logging.getLogger(__name__)

#: limit of connections that have not proved themselves
STRANGERS_MAX: Final = 256
#: seconds between two lines of the log about dropped peers
_TELL_S: Final = 10.0
#: seconds between two checks whether the path of the socket exists
RENEW_S: Final = 2.0
_ACCEPT_PAUSE_S: Final = 0.1


class RareWarning:
    """A warning of an event that any peer can cause at will: at most one line in ``_TELL_S`` seconds.

    The first is told at once; those that were passed over are counted in the next line. Thread: one.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._untold_count = 0
        self._told_s = float("-inf")

    def tell(self, text: str) -> None:
        """Log it, or count it."""
        now_s = time.monotonic()
        if now_s - self._told_s < _TELL_S:
            self._untold_count += 1
            return
        more = f" (and {self._untold_count} more before it since the last such line)" if self._untold_count else ""
        self._told_s, self._untold_count = now_s, 0
        self._log.warning("%s%s", text, more)

    def close(self) -> None:
        """Log how many were only counted."""
        if self._untold_count:
            self._log.warning("%d more warnings like the last one", self._untold_count)
            self._untold_count = 0


class Greeter:
    """Greets peers that connect.

    Args:
        listeners: bound, listening; closed by their owner after ``close``.
        greet: in the event loop; returns whether the peer is proved and was taken over, else it is closed.
        renewed: asked from time to time for a listener whose path was removed, to take the place of the one that lost
            it; raises OSError.
    """

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        greet: Callable[[socket.socket, str], Awaitable[bool]],
        renewed: Callable[[], socket.socket | None] = lambda: None,
    ) -> None:
        self._listeners = listeners
        self._greet = greet
        self._renewed = renewed
        self._acceptors: dict[socket.AddressFamily, asyncio.Task[None]] = {}
        #: unproved connections, oldest first  # written by: the loop
        self._strangers: dict[asyncio.Task[None], socket.socket] = {}
        self._evicted_count = 0
        self._told_s = float("-inf")
        self._unaccepted = RareWarning(_log)
        self._is_running = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._end: asyncio.Event
        self._thread = threading.Thread(target=self._run, name="data-greet", daemon=True)

    def start(self) -> None:
        """Accept from now on."""
        for listener in self._listeners:
            listener.setblocking(False)
        self._thread.start()
        self._is_running.wait()

    @property
    def strangers(self) -> tuple[socket.socket, ...]:
        """Connections that are being greeted; one that was taken over a moment ago may still be among them."""
        return tuple(self._strangers.values())

    def close(self) -> None:
        """Accept and greet no more; joins the thread. Idempotent."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._is_running.set()
        for listener in self._listeners:
            self._acceptors[socket.AddressFamily(listener.family)] = asyncio.ensure_future(self._accept(listener))
        renewing = asyncio.ensure_future(self._renew())
        await self._end.wait()
        tasks = [renewing, *self._acceptors.values(), *self._strangers]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._unaccepted.close()

    async def _renew(self) -> None:
        """Listen again where the socket was removed."""
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                listener = self._renewed()
            except OSError as error:
                _log.warning("the socket for data connections of this host cannot be made again: %s", error)
                continue
            if listener is not None:
                family = socket.AddressFamily(listener.family)
                listener.setblocking(False)
                self._acceptors[family].cancel()
                self._acceptors[family] = asyncio.ensure_future(self._accept(listener))

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, peer = await self._loop.sock_accept(listener)
            except OSError as error:
                # Descriptors may have run out: dropping a connection that is no peer's frees one.
                self._unaccepted.tell(f"the data server cannot accept a connection: {error}")
                self._evict()
                await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            name = address_text(canonical_host(peer[0]), peer[1]) if isinstance(peer, tuple) else "this host"
            task = asyncio.ensure_future(self._meet(connection, name))
            self._strangers[task] = connection
            task.add_done_callback(self._forget)
            if len(self._strangers) > STRANGERS_MAX:
                self._evict()

    async def _meet(self, connection: socket.socket, name: str) -> None:
        is_taken = False
        try:
            is_taken = await self._greet(connection, name)
        finally:
            if not is_taken:
                connection.close()

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._strangers.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a data connection could not be greeted", exc_info=error)

    def _evict(self) -> None:
        """Drop the unproved peer that has been here longest."""
        oldest = next(iter(self._strangers), None)
        if oldest is None:
            return
        del self._strangers[oldest]
        oldest.cancel()
        self._evicted_count += 1
        now_s = time.monotonic()
        if now_s - self._told_s >= _TELL_S:
            _log.warning(
                "%d data connections that proved nothing were closed for others (at most %d are held)",
                self._evicted_count,
                STRANGERS_MAX,
            )
            self._told_s, self._evicted_count = now_s, 0
