"""sample_stacks(): where the threads of this process spend their time, by samples of their stacks.

    every 10 ms:  frames of each thread ─► the thread's processor time since the sample before ─► added to its stack
                                           the rest of the time since then                     ─► waiting, there

A thread in native code counts for the Python line that called it. What waits for the interpreter's lock waits. Where
py-spy is installed, it takes the samples: from outside, without that lock, and of the processes of Python functions,
too; it tells only stacks that work.

    StackSampler.sample(5)    from the event loop; callers at one time share one sample

Held by: tests/rest/test_flame_graph.py
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from engine.gateways.insight import Stack, StackSample
from engine.insight.processor_time import clock_of

#: seconds from one sample to the next
INTERVAL_S: Final = 0.01
#: most seconds of one sample
SECONDS_MAX: Final = 30.0
#: stacks that are told, those with the most time first, and frames of one
_STACKS_MAX, _FRAMES_MAX = 2000, 100
#: seconds that py-spy has beside those of the sample
_START_S = 10
_OWN_FOLDER = str(Path(__file__).parents[2]) + os.sep

#: stack as py-spy writes it, and a process in it
_SPIED = re.compile(r"(?P<processes>process .*);thread \((?P<id>\w+)\)(?:: (?P<name>[^;]*))?;(?P<frames>.*)")
_PROCESS = re.compile(r'process (\d+):"')

Clocks = dict[int, int]


class StackSampler:
    """Samples of this process, one at a time. Thread: the event loop."""

    def __init__(self) -> None:
        self._going: asyncio.Future[StackSample] | None = None

    async def sample(self, seconds: float) -> StackSample:
        """Return the stacks of the next seconds; while another caller waits for a sample, that one."""
        if self._going is None or self._going.done():
            loop = asyncio.get_running_loop()
            self._going = loop.create_future()
            # A thread of no pool: this process may end without it.
            words = (loop, self._going, seconds)
            threading.Thread(target=_sample_for, args=words, name="stack sampler", daemon=True).start()
        return await asyncio.shield(self._going)


def _sample_for(loop: asyncio.AbstractEventLoop, going: asyncio.Future[StackSample], seconds: float) -> None:
    try:
        tell, found = going.set_result, sample_stacks(seconds)
    except Exception as error:
        tell, found = going.set_exception, error  # type: ignore[assignment]
    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(tell, found)


def sample_stacks(seconds: float) -> StackSample:
    """Return the stacks of this process during the next seconds; it takes as long."""
    spy = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    if spy is None:
        return _sampled_here(seconds, "")
    try:
        return _sampled_by(spy, seconds)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return _sampled_here(seconds, f"py-spy could not look at this process: {_reason(error)}")


def _reason(error: Exception) -> str:
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) else None
    lines = (said or str(error)).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def _sampled_here(seconds: float, note: str) -> StackSample:
    times: dict[tuple[str, tuple[CodeType, ...]], list[int]] = defaultdict(lambda: [0, 0])
    own, clocks, began = threading.get_ident(), _clocks(), time.monotonic()
    last = began
    while last - began < seconds:
        time.sleep(INTERVAL_S)
        now, before, clocks = time.monotonic(), clocks, _clocks()
        passed_us, last = round((now - last) * 1e6), now
        frames = sys._current_frames()
        for thread in threading.enumerate():
            frame, ident = frames.get(thread.ident or 0), thread.ident
            if frame is None or ident is None or ident == own:
                continue
            worked_us = min(passed_us, (clocks.get(ident, 0) - before.get(ident, 0)) // 1000)
            of_stack = times[thread.name, _codes(frame)]
            of_stack[0] += worked_us
            of_stack[1] += passed_us - worked_us
        del frames, frame  # they keep what the frames hold
    stacks = [Stack((name, *map(_frame_text, codes)), *spent) for (name, codes), spent in times.items()]
    return _sample(stacks, last - began, "samples of the process itself", note)


def _clocks() -> Clocks:
    """Return nanoseconds on a processor of each thread."""
    found = {}
    for thread in threading.enumerate():
        if thread.ident is not None and thread.native_id is not None:
            try:
                found[thread.ident] = time.clock_gettime_ns(clock_of(thread.native_id))
            except OSError:  # it has ended
                continue
    return found


def _codes(frame: FrameType | None) -> tuple[CodeType, ...]:
    codes: list[CodeType] = []
    while frame is not None:
        codes.append(frame.f_code)
        frame = frame.f_back
    return tuple(reversed(codes[:_FRAMES_MAX]))


def _frame_text(code: CodeType) -> str:
    path = code.co_filename.removeprefix(_OWN_FOLDER)
    short = path if path != code.co_filename else "/".join(Path(path).parts[-2:])
    return f"{code.co_qualname} ({short}:{code.co_firstlineno})"


def _sampled_by(spy: str, seconds: float) -> StackSample:
    """Return the stacks of this process and its children as py-spy sees them."""
    rate = round(1 / INTERVAL_S)
    with tempfile.TemporaryDirectory() as folder:
        folded = Path(folder) / "stacks"
        words = ["--pid", str(os.getpid()), "--duration", str(max(1, round(seconds))), "--rate", str(rate)]
        words += ["--format", "raw", "--output", str(folded), "--nonblocking", "--subprocesses", "--threads"]
        subprocess.run(
            [spy, "record", "--function", *words],
            check=True,
            capture_output=True,
            text=True,
            timeout=seconds + _START_S,
            stdin=subprocess.DEVNULL,
        )
        lines = folded.read_text(encoding="utf-8", errors="replace").splitlines()
    return _sample([_spied(line, rate) for line in lines], max(1, round(seconds)), "py-spy", "")


def _spied(line: str, rate: int) -> Stack:
    """Return a line of py-spy: ``process 7:"python";thread (9): task 1;run (task.py);work (job.py) 71``.

    The words with which processes were started are not told: they may have secrets.
    """
    text, _, count = line.rpartition(" ")
    found = _SPIED.fullmatch(text)
    if found is None:
        raise ValueError(f"{len(line)} bytes that are no stack")
    _, *children = _PROCESS.findall(found["processes"])
    thread = found["name"] or f"thread {found['id']}"
    frames = (*(f"process {number}" for number in children[-1:]), thread, *found["frames"].split(";"))
    return Stack(frames[:_FRAMES_MAX], int(count) * 1_000_000 // rate)


def _sample(stacks: list[Stack], seconds: float, taken_by: str, note: str) -> StackSample:
    stacks.sort(key=lambda stack: (-stack.busy_us, -stack.waiting_us, stack.frames))
    return StackSample(tuple(stacks[:_STACKS_MAX]), seconds, taken_by, note, max(0, len(stacks) - _STACKS_MAX))
