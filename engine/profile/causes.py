"""Causes: sentences that name what the time of a job went into, found by a table of rules.

    RULES     kind ── rule(profile) ─► Finding(text, time that it explains)

A finding counts when it explains some part of the job's time. The one that explains most is the sentence on top of the
page; where none is, the sentence says which operator took the longest. Rules that are more telling weigh more than
those that explain the same time as well: a scan of tiny files waits for its disk, too.

Held by: tests/profile/test_causes.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from engine.profile import cause_rules, wait_rules
from engine.profile.finding import LOST_MIN_MS, Finding, name_of, of_job
from engine.profile.job_profile import Cause, JobProfile
from engine.profile.spreads import spread_of
from engine.profile.time_parts import PARTS

Rule = Callable[[JobProfile], Iterable[Finding]]


class Row(NamedTuple):
    """A row of the table: a rule, the least part of the job's time that counts, and its weight beside others."""

    rule: Rule
    share_min: float = 0.1
    weight: float = 1.0


RULES: dict[str, Row] = {
    "failure": Row(wait_rules.failure, 0.0, 10.0),
    "cancellation": Row(wait_rules.cancellation, 0.0, 10.0),
    "restarts": Row(wait_rules.restarts, weight=1.2),
    "slots": Row(wait_rules.slots),
    "cross join": Row(cause_rules.cross_join, weight=1.3),
    "skew": Row(cause_rules.skew, weight=1.2),
    "slow function": Row(cause_rules.slow_function),
    "tiny files": Row(cause_rules.tiny_files, weight=1.2),
    "slow store": Row(wait_rules.slow_store, 0.2),
    "slow disk": Row(wait_rules.slow_source, 0.2),
    "spilling": Row(cause_rules.spilling),
    "bad estimate": Row(cause_rules.bad_estimate, 0.05),
    "busy processors": Row(wait_rules.busy_processors, 0.25, 0.3),
}


def with_causes(job: JobProfile) -> JobProfile:
    """Return a profile with its causes."""
    return msgspec.structs.replace(job, causes=causes_of(job))


def causes_of(job: JobProfile) -> tuple[Cause, ...]:
    """Return the causes, the most telling first; at least one for a job that has begun."""
    found = []
    for kind, row in RULES.items():
        for each in row.rule(job):
            share = each.lost_ms / max(1, job.duration_ms)
            if share >= row.share_min and each.lost_ms >= LOST_MIN_MS:
                found.append((row.weight * share, Cause(kind, each.text, min(1.0, share), each.vertex, each.advice)))
    found.sort(key=lambda pair: -pair[0])
    return tuple(cause for _, cause in found) or _most_of_the_time(job)


def _most_of_the_time(job: JobProfile) -> tuple[Cause, ...]:
    """Return the operator that took the longest in a job in which nothing stands out."""
    longest = max(enumerate(job.vertices), key=lambda pair: spread_of(pair[1], "time").most, default=None)
    if longest is None or not longest[1].operators:
        return ()
    place, vertex = longest
    operator = max(vertex.operators, key=lambda each: each.time_ms)
    part = max(("work", "function", "processor"), key=lambda name: vertex.parts.get(name, 0))
    took_ms = spread_of(vertex, "time").most
    text = f"nothing stands out: {name_of(operator)} took the longest, {of_job(took_ms, job)} ({PARTS[part]})"
    return (Cause("longest", text, min(1.0, took_ms / max(1, job.duration_ms)), place),)
