"""A Python function that works on one row for very long says so, and is ended where ``functions.timeout`` says when.

    main thread    function(row) ............................ never returns
    this thread    looks every second: the same call, the same row?
                       after 10 s        told on standard error, once: function, row, where it is
                       functions.timeout the function has failed, with the same, and the worker ends

Nothing is counted or timed while rows go through: the thread looks at the frames of the main thread. A call is the same
while the frame of the user's function is the same object, the current row is, and no batch has been finished. Frame and
row are kept between two looks only where a batch has taken half of the time already, so a row that is wide and quick is
not held here.

A library that keeps Python's lock (a regular expression that never ends) keeps this thread out. So each look sets a
timer of ``faulthandler``, which needs no lock. It prints the stack, without the row; or it writes the stack to the
worker's trace and ends the worker, and the task reports what is there in the function's stead (worker_trace.py).

Limits: a function that runs in the task's thread (``python.execution-mode: thread``) is not watched.
"""

from __future__ import annotations

import faulthandler
import linecache
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

from engine.functions.function_error import describe_row
from engine.graph.operator_descriptor import PythonOperator

#: seconds at one row after which a warning is logged
LONG_S: Final = 10.0
#: error type of a function that exceeded its time limit
TIMED_OUT: Final = "FunctionTimeoutError"
_LOOKS: Final = 10
_FRAMES_MAX: Final = 6
_OWN_FOLDER: Final = str(Path(__file__).parent)
#: module whose calls are those of Python's ``socket``, not of a user's function
_TRANSPORT: Final = str(Path(__file__).parent / "worker_protocol.py")


def too_long_text(name: str, passed_s: float, where: str = "") -> str:
    """Return the message about a function that exceeded its time limit."""
    place = f" {where}" if where else ""
    return (
        f"{name} has been at work on one row for {passed_s:.1f} s{place}, longer than functions.timeout; mend the"
        " function, or allow more"
    )


class Call(NamedTuple):
    """The user's function at work: its outermost frame, the innermost one, the row."""

    outer: FrameType
    inner: FrameType
    row: Any

    def is_same(self, other: Call | None, count: int, former_count: int) -> bool:
        """Return whether it is still the same call for the same row."""
        return other is not None and self.outer is other.outer and self.row is other.row and count == former_count

    def stack(self) -> list[str]:
        """Return the places of the user's code, innermost last."""
        lines: list[str] = []
        frame: FrameType | None = self.inner
        while frame is not None and len(lines) < _FRAMES_MAX:
            code = frame.f_code
            source = linecache.getline(code.co_filename, frame.f_lineno).strip()
            what = f": {source}" if source else ""
            lines.append(f"  at {code.co_filename}, line {frame.f_lineno}, in {code.co_name}{what}")
            frame = None if frame is self.outer else frame.f_back
        return lines[::-1]

    @property
    def place(self) -> tuple[str, int]:
        """File and line of the innermost frame."""
        return self.inner.f_code.co_filename, self.inner.f_lineno


def call_of(frame: FrameType | None) -> Call | None:
    """Return the call of a user's function that a thread is in, None where it is in none or waits for its input."""
    inner = outer = None
    while frame is not None and not frame.f_code.co_filename.startswith(_OWN_FOLDER):
        inner = inner or frame
        outer, frame = frame, frame.f_back
    if inner is None or outer is None or frame is None or frame.f_code.co_filename == _TRANSPORT:
        return None
    own = frame.f_locals
    row = own.get("row")
    return Call(outer, inner, row if row is not None else getattr(own.get("source"), "current", None))


class LongCalls:
    """Watches the function of one session. ``progress``: a number that changes with each batch that is finished.

    ``fail(message, file, line, row, details)`` reports a function that took too long; the worker ends behind it.
    ``trace``: descriptor of the worker's trace.
    """

    def __init__(
        self,
        operator: PythonOperator,
        timeout_s: float,
        progress: Callable[[], int],
        fail: Callable[[str, str, int, str, str], None],
        long_s: float = LONG_S,
        trace: int = 2,
    ) -> None:
        self._operator = operator
        self._timeout_s = timeout_s
        self._progress = progress
        self._fail = fail
        self._long_s = long_s
        self._trace = trace
        self._look_s = (min(long_s, timeout_s) if timeout_s else long_s) / _LOOKS
        self._watched = threading.get_ident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="drey-long-calls", daemon=True)

    def __enter__(self) -> None:
        self._set_timer()  # a function that never lets this thread run may begin at once
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()

    def _run(self) -> None:
        count, since_s = self._progress(), time.monotonic()
        call: Call | None = None
        is_told = False
        while not self._ended.wait(self._look_s):
            self._set_timer()
            now_s, now_count = time.monotonic(), self._progress()
            now = None
            if now_count == count and now_s - since_s >= self._look_s * _LOOKS / 2:
                now = call_of(sys._current_frames().get(self._watched))
            if now_count != count or (call is not None and not (now and now.is_same(call, now_count, count))):
                count, since_s = now_count, now_s
            call = now
            if call is None:
                continue
            passed_s = now_s - since_s
            if self._timeout_s and passed_s >= self._timeout_s:
                self._give_up(call, passed_s)
            if passed_s >= self._long_s and not is_told:
                is_told = True
                self._tell(call, passed_s)

    def _set_timer(self) -> None:
        if self._timeout_s:
            faulthandler.dump_traceback_later(self._timeout_s + self._look_s, exit=True, file=self._trace)
        else:
            faulthandler.dump_traceback_later(self._long_s, exit=False)

    def _text(self, call: Call, passed_s: float) -> str:
        row = "" if call.row is None else f" on {describe_row(call.row)}"
        return f"{self._operator.function_name} has been at work{row} for {passed_s:.0f} s"

    def _tell(self, call: Call, passed_s: float) -> None:
        place = f"({self._operator.file}, line {self._operator.line})"
        lines = [f"Python function {self._text(call, passed_s)} {place}; functions.timeout would end it", *call.stack()]
        os.write(2, ("\n".join(lines) + "\n").encode(errors="replace"))

    def _give_up(self, call: Call, passed_s: float) -> None:
        row = "" if call.row is None else describe_row(call.row)
        text = too_long_text(self._operator.function_name, passed_s)
        self._fail(text, *call.place, row, "\n".join(call.stack()))
        os._exit(1)
