"""Parts of the time of an attempt: what it went into.

    ready ── pause, slot ──► scheduled ── start ──► running ── input, buffers, function, spill, store, disk, ... ──► end

    pause       the restart strategy waited        function   a user's function: the operator's own time
    slot        no slot was free                   work       the engine's own work, on a processor
    start       sent to its TaskManager, set up    processor  ready to run, but the processors had others to run
    input       waited for rows                    spill, store, disk   neither: it waited for what it reads or writes
    buffers     waited for room in buffers

The parts of an attempt add up to its time. Waits inside a run are sums, so a timeline shows how long, not when.

Held by: tests/profile/test_job_profile.py
"""

from __future__ import annotations

from engine.profile.job_profile import AttemptProfile

#: parts in which an attempt waits for what is outside
OUTSIDE = ("spill", "store", "disk")
#: parts of an attempt's time in the order in which they are shown, and what they are called
PARTS = {
    "pause": "pause before a restart",
    "slot": "waited for a slot",
    "start": "was set up",
    "input": "waited for input",
    "buffers": "waited for room in buffers",
    "function": "user's function",
    "work": "work",
    "processor": "waited for a processor",
    "spill": "waited for the disk of spilled rows",
    "store": "waited for a store",
    "disk": "waited for a disk or a lock",
}


def pause_ms(attempt: AttemptProfile) -> int:
    """Return the time that the restart strategy waited before an attempt; 0 for a first one."""
    return max(0, attempt.created_ms - attempt.ready_ms) if attempt.created_ms >= 0 <= attempt.ready_ms else 0


def run_ms(attempt: AttemptProfile, now_ms: int) -> int:
    """Return the time from the moment at which an attempt ran to its end, or to now; 0 before it runs."""
    if attempt.running_ms < 0:
        return 0
    return max(0, (attempt.end_ms if attempt.end_ms >= 0 else now_ms) - attempt.running_ms)


def own_ms(attempt: AttemptProfile, now_ms: int) -> int:
    """Return the time of an attempt in which it waited neither for input nor for room."""
    return max(0, run_ms(attempt, now_ms) - attempt.input_ms - attempt.buffers_ms)


def time_parts(attempt: AttemptProfile, now_ms: int) -> dict[str, int]:
    """Return the parts of an attempt's time in ms, those of 0 left out."""
    scheduled_ms = attempt.scheduled_ms if attempt.scheduled_ms >= 0 else _end(attempt, now_ms)
    parts = {}
    if attempt.ready_ms >= 0:
        parts["pause"] = pause_ms(attempt)
        parts["slot"] = max(0, scheduled_ms - attempt.ready_ms - parts["pause"])
    if attempt.running_ms >= 0:
        parts["start"] = max(0, attempt.running_ms - scheduled_ms)
        parts.update(_inside(attempt, now_ms))
    return {name: parts[name] for name in PARTS if parts.get(name, 0) > 0}


def _end(attempt: AttemptProfile, now_ms: int) -> int:
    return attempt.end_ms if attempt.end_ms >= 0 else now_ms


def _inside(attempt: AttemptProfile, now_ms: int) -> dict[str, int]:
    left = run_ms(attempt, now_ms)
    parts = {}
    for name, wanted in (
        ("input", attempt.input_ms),
        ("buffers", attempt.buffers_ms),
        ("function", attempt.function_ms),
    ):
        parts[name] = min(left, wanted)
        left -= parts[name]
    # Where the function is called, its operator takes time on the task's processor that is told already.
    told = min(attempt.cpu_ms, attempt.function_ms)
    if not attempt.cpu_ms and not attempt.runnable_ms:  # not known
        parts["work"] = left
        return parts
    for name, wanted in (("work", attempt.cpu_ms - told), ("processor", attempt.runnable_ms)):
        parts[name] = min(left, wanted)
        left -= parts[name]
    parts["spill" if attempt.spilled_bytes else "store" if attempt.requests else "disk"] = left
    return parts
