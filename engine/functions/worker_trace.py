"""A worker's trace: a file in memory that ``faulthandler`` writes Python's stacks to, whatever the function is doing.

    asked_place(worker)     a signal has a worker that runs write where it is
    time_out_of(worker)     of one that has ended: the stack that the timer of functions.timeout wrote before it ended
                            the process (long_calls.py), None where something else did

    Timeout (0:00:05)!
    Thread 0x00007f1a3b7fe640 (most recent call first):     the thread of long_calls.py, and those of the function
      ...
    Thread 0x00007f1a48a5a740 (most recent call first):     the main thread stands last, it was there first
      File "/home/me/job.py", line 17 in parse
      File ".../engine/functions/function_body.py", line 272 in _looped

Source: the format is that of Python/traceback.c.
Held by: tests/functions/test_worker_watch.py
Held by: tests/functions/test_long_calls.py
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.functions.worker_protocol import TRACE_SIGNAL

if TYPE_CHECKING:
    from engine.functions.worker_process import Worker

#: seconds for which a worker may take to report its place
_ASK_S: Final = 0.1
_BYTES_MAX: Final = 1 << 16
_OWN_FOLDER: Final = str(Path(__file__).parent)
_FRAME: Final = re.compile(r'^  File "(.+)", line (\d+) in (.*)', re.MULTILINE)
_TIMED_OUT: Final = re.compile(r"^Timeout \(.*\)!$", re.MULTILINE)
_THREAD: Final = re.compile(r"^(?:Thread 0x|Current thread 0x)", re.MULTILINE)

#: file, line and function
_Frame = tuple[str, str, str]


class TimedOut(NamedTuple):
    """The place of a function that has blocked the interpreter too long: the innermost line, and its stack as text."""

    file: str
    line: int
    stack: str


def asked_place(worker: Worker) -> tuple[str, int]:
    """Ask a worker where its function is; return file and line, ("", 0) when it does not say."""
    try:
        os.kill(worker.pid, TRACE_SIGNAL)
    except ProcessLookupError:
        return "", 0
    deadline = time.monotonic() + _ASK_S
    size = -1
    while time.monotonic() < deadline:
        try:
            now = os.fstat(worker.trace).st_size
        except OSError:
            return "", 0
        if now and now == size:
            break
        size = now
        time.sleep(0.002)
    return _innermost(_FRAME.findall(_text(worker)))


def time_out_of(worker: Worker) -> TimedOut | None:
    """Return the place of a worker when it was ended for functions.timeout; None for other ends."""
    _, *timed_out = _TIMED_OUT.split(_text(worker))
    if not timed_out:
        return None
    main_thread = _THREAD.split(timed_out[-1])[-1]
    frames: list[_Frame] = _FRAME.findall(main_thread)
    own = [*takewhile(lambda frame: not frame[0].startswith(_OWN_FOLDER), frames)]
    stack = [f"  at {file}, line {line}, in {name}" for file, line, name in reversed(own)]
    return TimedOut(*_innermost(own), "\n".join(stack))


def _text(worker: Worker) -> str:
    try:
        return os.pread(worker.trace, _BYTES_MAX, 0).decode(errors="replace")
    except OSError:
        return ""


def _innermost(frames: Sequence[_Frame]) -> tuple[str, int]:
    """Return the innermost place that is neither ours nor a library's, or else the innermost that is not ours."""
    others = [(file, int(line)) for file, line, _ in frames if not file.startswith(_OWN_FOLDER)]
    own = [place for place in others if "/site-packages/" not in place[0] and "/lib/python" not in place[0]]
    return (own or others or [("", 0)])[0]
