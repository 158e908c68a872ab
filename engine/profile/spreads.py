"""Spreads: least, median and largest of a number over the subtasks of a vertex; and the parts of their time together.

A number is uneven when the largest is more than three times the median, and large enough to matter. Of an even number
of subtasks the median is the lower of the two in the middle: so one of two can stand out.

Held by: tests/profile/test_job_profile.py
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median_low

import msgspec

from engine.profile.job_profile import AttemptProfile, Spread, VertexProfile
from engine.profile.time_parts import PARTS, own_ms, time_parts

#: ratio of the largest to the median above which a number is uneven
UNEVEN = 3.0
#: number, how to take it of an attempt, and the least size of the largest that matters
_NUMBERS: tuple[tuple[str, Callable[[AttemptProfile], float], float], ...] = (
    ("rows in", lambda attempt: attempt.rows_in, 1000),
    ("rows out", lambda attempt: attempt.rows_out, 1000),
    ("read", lambda attempt: attempt.bytes_in, 1 << 20),
    ("written", lambda attempt: attempt.bytes_out, 1 << 20),
    ("spilled", lambda attempt: attempt.spilled_bytes, 1 << 20),
    ("managed memory", lambda attempt: attempt.managed_bytes_peak, 1 << 20),
    ("memory of Arrow", lambda attempt: attempt.arrow_bytes_peak, 64 << 20),
    ("memory of its workers", lambda attempt: attempt.worker_bytes_peak, 64 << 20),
)
_TIME_MIN_MS = 100


def with_spreads(vertex: VertexProfile, now_ms: int) -> VertexProfile:
    """Return a vertex with the spreads of its subtasks and the parts of their time; of what is 0 there is none."""
    current = vertex.current
    vertex = _with_parts(vertex, {(each.subtask, each.attempt) for each in current}, now_ms)
    begun = [attempt for attempt in current if attempt.running_ms >= 0]
    if not begun:
        return vertex
    numbers = (("time", lambda attempt: own_ms(attempt, now_ms), _TIME_MIN_MS), *_NUMBERS)
    found = (_spread(name, begun, take, least) for name, take, least in numbers)
    return msgspec.structs.replace(vertex, spreads=tuple(each for each in found if each.most))


def _with_parts(vertex: VertexProfile, latest: set[tuple[int, int]], now_ms: int) -> VertexProfile:
    totals, most = dict.fromkeys(PARTS, 0), dict.fromkeys(PARTS, 0)
    for attempt in vertex.attempts:
        is_latest = (attempt.subtask, attempt.attempt) in latest
        for name, size in time_parts(attempt, now_ms).items():
            totals[name] += size
            if is_latest and size > most[name]:
                most[name] = size
    return msgspec.structs.replace(
        vertex,
        parts={name: size for name, size in totals.items() if size},
        parts_most={name: size for name, size in most.items() if size},
    )


def spread_of(vertex: VertexProfile, name: str) -> Spread:
    """Return a spread by its name; zeros when there is none."""
    return next((each for each in vertex.spreads if each.name == name), Spread(name))


def _spread(
    name: str, attempts: list[AttemptProfile], take: Callable[[AttemptProfile], float], matters: float
) -> Spread:
    values = [take(attempt) for attempt in attempts]
    middle, most = median_low(values), max(values)
    is_uneven = len(values) > 1 and most >= matters and most > UNEVEN * middle
    return Spread(name, min(values), middle, most, attempts[values.index(most)].subtask, is_uneven)
