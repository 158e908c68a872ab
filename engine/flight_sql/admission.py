"""Admission: how many statements run at once. Others wait in a queue, in order, and beyond it they are refused.

    with admission.place(is_cancelled):     waits; then the statement runs
        ...
    place.give_back()                       also before the end: its job has ended, and rows are left to be sent

    running_max     statements whose jobs run             waiting_max     that wait; one more is refused at once

Where the first one in the queue has waited for GIVE_WAY_S, ``on_wait`` asks those that run to make room: a job that a
slow reader holds back writes the rest of its rows to disk, and ends. So a reader that stands still stops no other.

Thread: any.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from engine.errors import EngineError

GIVE_WAY_S: Final = 0.5
_LOOK_S: Final = 0.05


class BusyError(EngineError):
    """Too many statements wait already."""


class GoneError(EngineError):
    """The client went away, or cancelled, before or while its statement ran."""


class Place:
    """Permission to run one statement: at most so many run at once."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._is_held = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.give_back()

    def give_back(self) -> None:
        """Let another one run; idempotent."""
        self._admission._give_back(self)


class Admission:
    """The statements that run and those that wait."""

    def __init__(self, running_max: int, waiting_max: int, on_wait: Callable[[], None]) -> None:
        self._running_max = running_max
        self.waiting_max = waiting_max
        self._on_wait = on_wait
        self._changed = threading.Condition()
        self._running = 0  # guarded by: self._changed
        self._waiting: deque[object] = deque()  # guarded by: self._changed

    @property
    def running(self) -> int:
        """Number of statements that run."""
        return self._running

    @property
    def waiting(self) -> int:
        """Number of statements that wait."""
        return len(self._waiting)

    def place(self, is_cancelled: Callable[[], bool]) -> Place:
        """Wait for a place, and return it. Raises: BusyError, GoneError."""
        mine = object()
        with self._changed:
            if len(self._waiting) >= self.waiting_max and not self._has_room():
                raise BusyError(
                    f"busy: {self._running} statements run and {len(self._waiting)} wait; ask again later "
                    "(flight-sql.max-running, flight-sql.max-waiting)"
                )
            self._waiting.append(mine)
        try:
            self._wait(mine, is_cancelled)
        except BaseException:
            with self._changed:
                self._waiting.remove(mine)
                self._changed.notify_all()
            raise
        return Place(self)

    def _has_room(self) -> bool:
        return self._running < self._running_max and not self._waiting

    def _wait(self, mine: object, is_cancelled: Callable[[], bool]) -> None:
        asks_s = time.monotonic() + GIVE_WAY_S
        while True:
            with self._changed:
                is_first = self._waiting[0] is mine
                if is_first and self._running < self._running_max:
                    self._waiting.popleft()
                    self._running += 1
                    self._changed.notify_all()
                    return
                self._changed.wait(_LOOK_S)
            if is_cancelled():
                raise GoneError("cancelled while it waited for its turn")
            if is_first and time.monotonic() >= asks_s:
                self._on_wait()

    def _give_back(self, place: Place) -> None:
        with self._changed:
            if place._is_held:
                place._is_held = False
                self._running -= 1
                self._changed.notify_all()
