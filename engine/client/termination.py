"""SIGTERM, SIGHUP and Ctrl-C while a script waits for its job, or while something is cleaned up.

    with leaving_on_termination(): ...      SIGTERM raises TerminatedError, a SystemExit(143), instead of a sudden
                                            death; SIGHUP (its terminal is gone) HungUpError, a SystemExit(129)
    with uninterrupted() as interrupts:     no signal is raised within, but at the end
        interrupts.tell(begin_to_cancel)    called once as soon as there is one, also one that came before
        job.result()

Python ends at once on SIGTERM and SIGHUP, with no ``finally`` and no ``atexit``: staging and spill folders would be
left until the next start sweeps them. Ctrl-C raises wherever the main thread is, and a second one raises again: within
a lock of ``threading``, a ``finally``, a wait for threads that end. So code that waits for a job of this process, and
code that cleans up, must not be interrupted by a signal:

    signal ─► within uninterrupted()          kept; raised at the end, in place of the error it may have caused
           ─► within _SAME_S of the last      the same request once more (a key that bounces, a group that is signalled)
           ─► else                            raised here
    When cleaning up takes longer than 10 s after the first signal, the next one is raised all the same: a user who
    presses Ctrl-C then wants to leave now. While Python ends, signals are only kept.

Only the main thread handles signals. The system may deliver one to another thread, which does not wake a wait of the
main thread, so long waits have a time-out. A script that has a handler of its own keeps it, and then no signal is kept
back. Under nohup SIGHUP stays ignored, and the script runs on. Output to a terminal that is gone is dropped.
"""

from __future__ import annotations

import atexit
import math
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, Self

from engine.log_output import guard_output

#: seconds within which signals count as one
_SAME_S = 0.5
#: seconds after which a signal interrupts cleaning up, too
_PATIENCE_S = 10.0


class TerminatedError(SystemExit):
    """The process was asked to end; its ``code`` is what a shell reports for a process that SIGTERM ended."""


class HungUpError(TerminatedError):
    """The terminal of the process is gone, so its output is not seen."""


#: signals that ask a process to end, and all signals that are deferred during clean-up
_ENDS = (signal.SIGTERM, signal.SIGHUP)
_ALL = (signal.SIGINT, *_ENDS)


class _Signals:
    """Handler of these signals. Main thread only, as handlers are."""

    def __init__(self) -> None:
        #: number of active blocks that defer signals
        self._depth = 0
        self._kept: int | None = None
        #: time of the deferred signal, or of the last one that was raised
        self._since_s = -math.inf
        self._listeners: list[Callable[[], object]] = []
        #: original handlers, and the number of blocks that replaced them
        self._previous: dict[int, Any] = {}
        self._wanted: Counter[int] = Counter()
        self._is_watching_the_end = False

    def take(self, number: int, _frame: FrameType | None = None) -> None:
        """Raise a signal, or keep it."""
        now_s = time.monotonic()
        passed_s = now_s - self._since_s
        if self._depth and self._kept is not None:
            if passed_s < _PATIENCE_S:
                return
        elif passed_s < _SAME_S:
            return
        elif self._depth:
            self._kept, self._since_s = number, now_s
            for listener in self._listeners:
                listener()
            return
        self._since_s = now_s
        raise _error_of(number)

    def hold(self, *numbers: int) -> None:
        """Handle these signals where the script does not."""
        if not self._is_watching_the_end:
            self._is_watching_the_end = True
            atexit.register(self._end)
        for number in numbers:
            self._wanted[number] += 1
            handler = signal.getsignal(number)
            if handler is signal.SIG_DFL or handler is signal.default_int_handler:
                self._previous[number] = handler
                signal.signal(number, self.take)

    def let_go(self, *numbers: int) -> None:
        """Restore the handlers, unless a signal was raised a moment ago: the next one is the same request."""
        self._wanted.subtract(numbers)
        if time.monotonic() - self._since_s < _SAME_S:
            return
        for number in [number for number in self._previous if self._wanted[number] <= 0]:
            handler = self._previous.pop(number)
            if signal.getsignal(number) == self.take:
                signal.signal(number, handler)

    def begin(self) -> None:
        """Keep signals from now on."""
        if self._depth == 0:
            self._kept = None
            self._listeners.clear()
        self._depth += 1

    def listen(self, listener: Callable[[], object]) -> None:
        """Call something when a signal comes, or now when one has come."""
        self._listeners.append(listener)
        if self._kept is not None:
            listener()
        else:
            self._since_s = -math.inf  # a program that begins another job has survived the last signal

    def end(self, listener: Callable[[], object] | None) -> BaseException | None:
        """Keep signals no more; return what is to be raised for one that came."""
        if listener is not None:
            self._listeners.remove(listener)
        self._depth -= 1
        if self._depth or self._kept is None:
            return None
        number, self._kept, self._since_s = self._kept, None, time.monotonic()
        return _error_of(number)

    def _end(self) -> None:
        """Keep signals while Python ends: only cleaning up is left to be done."""
        self.hold(*_ALL)
        self.begin()


def _error_of(number: int) -> BaseException:
    if number == signal.SIGHUP:
        return HungUpError(128 + number)
    return TerminatedError(128 + number) if number == signal.SIGTERM else KeyboardInterrupt()


_SIGNALS = _Signals()


class Interrupts:
    """Signals that are kept until the end of a block."""

    def __init__(self) -> None:
        self._is_main = threading.current_thread() is threading.main_thread()
        self._listener: Callable[[], object] | None = None

    def tell(self, listener: Callable[[], object]) -> None:
        """Register a function that is called once when a signal comes, whatever runs then; one for each block."""
        if self._is_main:
            self._listener = listener
            _SIGNALS.listen(listener)

    def __enter__(self) -> Self:
        if self._is_main:
            _SIGNALS.hold(*_ALL)
            _SIGNALS.begin()
        return self

    def __exit__(
        self, _error_type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if not self._is_main:
            return
        interrupt = _SIGNALS.end(self._listener)
        _SIGNALS.let_go(*_ALL)
        if interrupt is not None:
            raise interrupt from None


def uninterrupted() -> Interrupts:
    """Return a block that no signal breaks off; what came is raised at its end."""
    return Interrupts()


@contextmanager
def leaving_on_termination() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into TerminatedError where they have no handler and are not ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [number for number in _ENDS if signal.getsignal(number) is signal.SIG_DFL]
    _SIGNALS.hold(*taken)
    try:
        yield
    finally:
        _SIGNALS.let_go(*taken)


@contextmanager
def after(error: BaseException) -> Iterator[None]:
    """Report an error and clean up after it; output to a terminal that is gone is dropped."""
    if isinstance(error, HungUpError):
        guard_output()
        with suppress(OSError):  # raised by code that writes past standard output
            yield
    else:
        yield
