"""Progress of a job, from its subtasks: a share that is never too high, a time left only where there is a basis.

    JobOverview ─► Progress(percent=30, finished=12, total=40, left_ms=70_000)

The share counts subtasks that have finished, rounded down: 100 % is the end. The time left is what the others take at
the rate since the first subtask began, so waiting for slots does not count. It is not known before ``_BASIS`` subtasks
and a tenth of all have finished, nor while the job waits. Stages differ, so it is shown in coarse steps, as "about".

Held by: tests/rest/test_overview.py
"""

from __future__ import annotations

from typing import NamedTuple

from engine.gateways.messages import JobOverview

_BASIS = 3
_SHARE = 0.1
#: steps in which people are told a time, in seconds: limit, step, unit
_STEPS = ((60, 10, 1, "s"), (3600, 60, 60, "min"), (float("inf"), 3600, 3600, "h"))


class Progress(NamedTuple):
    """The progress of a job that has not ended."""

    percent: int
    finished: int
    total: int
    #: time left; None: there is no basis to say
    left_ms: int | None


def progress_of(job: JobOverview, now_ms: int) -> Progress | None:
    """Return the progress; None without subtasks."""
    total, finished = sum(job.tasks.values()), job.tasks.get("FINISHED", 0)
    if not total:
        return None
    left_ms = None
    if job.begun_ms >= 0 and job.waiting is None and finished >= max(_BASIS, _SHARE * total):
        left_ms = max(0, now_ms - job.begun_ms) * (total - finished) // finished
    return Progress(100 * finished // total, finished, total, left_ms)


def left_text(left_ms: int | None) -> str:
    """Return a time left for people: ``about 2 min left``."""
    if left_ms is None:
        return "time left not known"
    seconds = left_ms / 1000
    if seconds < _STEPS[0][1]:
        return "seconds left"
    step, unit, word = next((step, unit, word) for limit, step, unit, word in _STEPS if seconds < limit)
    return f"about {round(seconds / step) * step // unit} {word} left"
