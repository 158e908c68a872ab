"""RunningStatements: the statements of clients, from their call to its end; a client that goes away ends its own.

    call ─► begin() ─► waits for its turn ─► a job, whose rows a stream gives
                          watcher, LOOK_S: has the client gone? has the job ended? are no rows read?
    end()                 the last row was sent, an error, the call was dropped

    cancelled by          the client's connection (the call is cancelled), CancelFlightInfo with its ticket, a reader
                          that does not take for ``idle_s`` what is there, the server's end

The object that asks whether a call was cancelled is the call's, and must not be used after it: a statement lets go of
it in ``end``, under its lock.

Held by: tests/flight_sql/test_statements.py
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from engine.api.result_stream import ResultStream
from engine.client.job_listener import current_listener
from engine.flight_sql.admission import Admission, GoneError, Place

_LOOK_S: Final = 0.05
_log = logging.getLogger(__name__)


class RunningStatement:
    """One statement. Thread: that of its call, and the watcher's."""

    def __init__(self, number: str, owner: str, is_cancelled: Callable[[], bool]) -> None:
        self.number = number
        self.owner = owner
        self._lock = threading.Lock()
        #: question to the call whether it was cancelled; None after its end. Guarded by: self._lock
        self._call_is_cancelled: Callable[[], bool] | None = is_cancelled
        self._stream: ResultStream | None = None
        self._why = ""
        self._place: Place | None = None
        #: time when its client was given something to take; None while the client waits for more
        self._given_s: float | None = None

    def is_cancelled(self) -> bool:
        """Whether its rows are not wanted any more."""
        with self._lock:
            if not self._why and self._call_is_cancelled is not None and self._call_is_cancelled():
                self._why = "the client went away or cancelled"
            return bool(self._why)

    def check(self) -> None:
        """Raise GoneError if it was cancelled."""
        if self.is_cancelled():
            raise GoneError(f"cancelled: {self._why}")

    def admit(self, admission: Admission) -> None:
        """Wait for its turn. Raises: BusyError, GoneError."""
        self._place = admission.place(self.is_cancelled)

    def follow(self, stream: ResultStream) -> None:
        """Take the stream that its rows come from."""
        self._stream = stream

    def wanted(self) -> None:
        """Note that the client waits for rows, however long its job needs for them."""
        self._given_s = None

    def gave(self) -> None:
        """Note that the client has something to take."""
        self._given_s = time.monotonic()

    def cancel(self, why: str) -> None:
        """End its job. Thread: any."""
        with self._lock:
            self._why = self._why or why
            stream = self._stream
        if stream is not None:
            stream.close()

    def make_room(self) -> None:
        """Run its job to its end, whether or not its rows are read."""
        stream = self._stream
        if stream is not None and stream.is_running:
            stream.give_way()

    def look(self, idle_s: float) -> None:
        """Do what its state asks for. Thread: the watcher's."""
        stream = self._stream
        if self.is_cancelled():
            self.cancel("")
        elif (given_s := self._given_s) is not None and time.monotonic() - given_s > idle_s:
            self.cancel(f"no row was taken for {idle_s:g} s")
        if stream is not None and not stream.is_running and self._place is not None:
            self._place.give_back()

    def end(self) -> None:
        """Let go of all it holds; idempotent."""
        with self._lock:
            self._call_is_cancelled = None
        stream, self._stream = self._stream, None
        try:
            if stream is not None:
                stream.close()
        finally:
            if self._place is not None:
                self._place.give_back()


class CancelListener:
    """A listener of a job that ends it where its statement was cancelled, and passes everything on."""

    wants_progress = True

    def __init__(self, statement: RunningStatement) -> None:
        self._statement = statement
        self._listener = current_listener()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listener, name)

    def on_progress(self, progress: Any) -> None:
        """Check whether the statement is wanted."""
        self._statement.check()
        if self._listener.wants_progress:
            self._listener.on_progress(progress)


class RunningStatements:
    """All statements of a server that run or wait, and the thread that looks after them."""

    def __init__(self, running_max: int, waiting_max: int, idle_s: float) -> None:
        self.admission = Admission(running_max, waiting_max, self._make_room)
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._statements: set[RunningStatement] = set()  # guarded by: self._lock
        self._is_closing = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="drey-flight-sql-watcher", daemon=True)
        self._watcher.start()

    def begin(self, number: str, owner: str, is_cancelled: Callable[[], bool]) -> RunningStatement:
        """Return a new statement; to be ended with ``end``."""
        statement = RunningStatement(number, owner, is_cancelled)
        with self._lock:
            if self._is_closing.is_set():
                raise GoneError("the server is shutting down")
            self._statements.add(statement)
        return statement

    def end(self, statement: RunningStatement) -> None:
        """End a statement; idempotent."""
        with self._lock:
            self._statements.discard(statement)
        statement.end()

    def cancel(self, number: str, owner: str) -> bool:
        """Cancel a statement of an owner; whether there is one."""
        found = [each for each in self._all() if each.number == number and each.owner == owner]
        for each in found:
            each.cancel("the client asked for it")
        return bool(found)

    def close(self) -> None:
        """Cancel all statements, and take no more."""
        with self._lock:
            self._is_closing.set()
        for each in self._all():
            each.cancel("the server is shutting down")
        self._watcher.join()

    def _all(self) -> list[RunningStatement]:
        with self._lock:
            return list(self._statements)

    def _make_room(self) -> None:
        for each in self._all():
            each.make_room()

    def _watch(self) -> None:
        while not self._is_closing.wait(_LOOK_S):
            for each in self._all():
                try:
                    each.look(self._idle_s)
                except Exception:  # one statement's trouble is not that of the others
                    _log.exception("a statement could not be looked after")
