"""Turns: who handles a very wide row takes turns, so that a process holds the copies of one, not of every slot.

    with turn(row_bytes): read, hand on              narrow rows take no turn and wait for nobody
        with turn(row_bytes): write                  inside a turn of the same thread: nothing more to wait for
        with paused(): wait for others               another thread may have the turn meanwhile
        with lent(): wait for who takes the row      the row goes by reference, and the turn with it
    with turn(row_bytes, is_handed=True): take it    the taker is a guest in the turn of who waits for it
    when_let_go(wait)                                called by the next ``go_on`` of this thread
    go_on()                                          the row that was handed on has been let go of
    give_up()                                        a task has ended, in the middle of a turn where it has failed

    free ──take──► held ──lent──► lent ──guest──► lent, a guest in it
      ▲             │ ▲            │ ▲                   │
      └──give, pause┘ └────────────┘ └───────────────────┘

A row of 64 MB is there several times while it is read, filtered and written: the page of the file, the array, the
bytes for the next file. Two slots that do this at once need twice as much, for no gain.

A turn lasts from before the row is read until the reader comes back for more, so it covers what is chained to the
reader, also the sink. Who waits for another task inside a turn pauses or lends it, for that task takes turns too.
Who waits for somebody who has his own copy of the row (a Python worker) does so when nobody here has one any more:
the frames above him hold the row until they return, so he is called when the driver has let it go.
A turn bounds memory, it never stands in the way of the job: nobody waits longer than WAIT_S for a turn in which
nothing has happened meanwhile.

Thread: any.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Final

#: rows from this width on take turns
WIDE_BYTES: Final = 8 << 20
#: a wide row is written within seconds on the slowest of disks
WAIT_S: Final = 30.0


class Turns:
    """The turns of a process."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._changed = threading.Condition()
        #: thread that has the turn  # guarded by: self._changed
        self._holder: int | None = None
        #: thread that acts in a turn that is lent  # guarded by: self._changed
        self._guest: int | None = None
        self._is_lent = False  # guarded by: self._changed
        #: how often any of it has changed  # guarded by: self._changed
        self._count = 0
        self._local = threading.local()
        #: whether a row so wide was handled before
        self.has_seen_wide = False

    @property
    def has_guest(self) -> bool:
        """Whether somebody works on a row that was handed over."""
        return self._guest is not None

    @contextlib.contextmanager
    def turn(self, row_bytes: float, *, is_handed: bool = False) -> Iterator[None]:
        """Hold the turn while rows of this width are handled; does nothing for narrow ones and inside a turn."""
        thread = threading.get_ident()
        self.has_seen_wide |= row_bytes >= WIDE_BYTES
        if row_bytes < WIDE_BYTES or thread in (self._holder, self._guest) or not self._take(thread, is_handed):
            yield
            return
        try:
            yield
        finally:
            # For the thread that took it: a generator may be closed by another one.
            self._give(thread)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let others have the turn while this thread waits for them; does nothing outside a turn."""
        thread = threading.get_ident()
        is_guest = thread == self._guest
        if not is_guest and thread != self._holder:
            yield
            return
        self._give(thread)
        try:
            yield
        finally:
            # Who waits in vain goes on without: ``turn`` ends only what is held.
            self._take(thread, is_handed=is_guest)

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Let who takes the row act in this thread's turn; a guest pauses the turn as its holder would."""
        thread = threading.get_ident()
        if self._holder != thread:
            with self.paused():
                yield
            return
        with self._changed:
            self._is_lent = True
            self._note_change()
        try:
            yield
        finally:
            with self._changed:
                self._is_lent = False
                while self._guest is not None and self._wait():
                    pass

    def when_let_go(self, wait: Callable[[], None]) -> None:
        """Have ``wait`` called by this thread's next ``go_on``; once, however often it is asked for."""
        waits = self._waits
        if wait not in waits:
            waits.append(wait)

    @property
    def _waits(self) -> list[Callable[[], None]]:
        """What this thread's next ``go_on`` calls."""
        found: list[Callable[[], None]] = self._local.__dict__.setdefault("waits", [])
        return found

    def go_on(self) -> None:
        """Note that this thread has let go of the row it handed on; tell who waits that it goes on, with another."""
        waits = self._waits
        while waits:
            waits.pop()()
        if self._holder == threading.get_ident():
            with self._changed:
                self._note_change()

    def give_up(self) -> None:
        """End whatever turn this thread has: one that has failed may have left it without ending it."""
        self._waits.clear()
        with self._changed:
            self._give(threading.get_ident())

    def _take(self, thread: int, is_handed: bool) -> bool:
        with self._changed:
            while self._holder is not None:
                if is_handed and self._is_lent and self._guest is None:
                    self._guest = thread
                    self._note_change()
                    return True
                if not self._wait():
                    return False
            self._holder = thread
            self._note_change()
            return True

    def _wait(self) -> bool:
        """Wait for a change; whether there was one in time."""
        seen = self._count
        return self._changed.wait_for(lambda: self._count != seen, self._wait_s)

    def _give(self, thread: int) -> None:
        """End the turn or the visit, if the thread still has it."""
        with self._changed:
            if self._guest == thread:
                self._guest = None
            elif self._holder == thread:
                self._holder = None
                self._is_lent = False
            self._note_change()

    def _note_change(self) -> None:
        self._count += 1
        self._changed.notify_all()


_turns = Turns()
when_let_go = _turns.when_let_go
turn = _turns.turn
paused = _turns.paused
lent = _turns.lent
go_on = _turns.go_on
give_up = _turns.give_up


def has_guest() -> bool:
    """Whether somebody works on a row that was handed over."""
    return _turns.has_guest


def has_seen_wide() -> bool:
    """Whether this process has handled a row so wide."""
    return _turns.has_seen_wide
