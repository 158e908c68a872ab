"""JobTimers: which timers of a job run; they are set and stopped by instructions.

    watch(timer, seconds, is_wanted)        again and again: it is set once, and stopped when it is not wanted any more

Pure.

Held by: tests/jobmaster/test_job_state.py
"""

from __future__ import annotations

from engine.jobmaster.job_instruction import Instruction, SetTimer, StopTimer, Timer


class JobTimers:
    """The running timers of a job. ``out`` takes the instructions."""

    def __init__(self, out: list[Instruction]) -> None:
        self._out = out
        self.running: set[Timer] = set()

    def watch(self, timer: Timer, seconds: float, *, is_wanted: bool) -> None:
        """Begin to count when that is wanted, stop when it is not. One that has fired counts anew after a stop."""
        if is_wanted == (timer in self.running):
            return
        if is_wanted:
            self.running.add(timer)
            self._out.append(SetTimer(timer, seconds))
        else:
            self.stop(timer)

    def is_running(self, timer: Timer) -> bool:
        """Whether it was set and has not been stopped."""
        return timer in self.running

    def stop(self, timer: Timer) -> None:
        """Count no more."""
        if timer in self.running:
            self.running.remove(timer)
            self._out.append(StopTimer(timer))

    def stop_all(self) -> None:
        """Count nothing any more."""
        for timer in sorted(self.running):
            self.stop(timer)
