"""The common parts of rules: a finding before it becomes a Cause, and how times, rows and names are told.

Held by: tests/profile/test_causes.py
"""

from __future__ import annotations

from typing import NamedTuple

from engine.profile.job_profile import JobProfile, OperatorProfile
from engine.shown_quantities import duration_text
from engine.shown_sizes import rows_text

#: milliseconds that are noise
LOST_MIN_MS = 30
_NAME_CHARACTERS = 80
_MILLION, _BILLION = 1e6, 1e9


class Finding(NamedTuple):
    """A finding of a rule: what it says, the time that it explains, and what to do about it."""

    text: str
    lost_ms: float
    vertex: int = -1
    advice: str = ""


def of_job(lost_ms: float, job: JobProfile) -> str:
    """Return a time as a part of the job's: ``48.0 s of 58.0 s``."""
    return f"{duration_text(round(min(lost_ms, job.duration_ms)))} of {duration_text(job.duration_ms)}"


def times_text(ratio: float) -> str:
    """Return a factor: ``17``, ``3.4``."""
    return f"{ratio:,.0f}" if ratio >= 9.95 else f"{ratio:.1f}".removesuffix(".0")


def rows_in_short(rows: float) -> str:
    """Return a number of rows: ``512``, ``5.1 M``, ``2.0 G``."""
    if rows >= 0.9995 * _BILLION:
        return f"{rows / _BILLION:.1f} G"
    return f"{rows / _MILLION:.1f} M" if rows >= 0.9995 * _MILLION else rows_text(rows)


def name_of(operator: OperatorProfile) -> str:
    """Return the name of an operator, not longer than a sentence bears."""
    name = operator.name
    return name if len(name) <= _NAME_CHARACTERS else f"{name[: _NAME_CHARACTERS - 1]}…"


def file_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]
