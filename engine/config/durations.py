"""Durations as people write them: ``100 ms``, ``10 s``, ``5 min``, ``1 h``; a bare number is milliseconds.

Source: the duration syntax of Flink's configuration.
"""

from __future__ import annotations

import re

from engine.errors import ConfigurationError

_UNIT_MS = {"": 1, "ms": 1, "s": 1_000, "sec": 1_000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_duration_ms(text: str) -> int:
    """Return the milliseconds of a duration such as ``5 min``; anything else raises ConfigurationError."""
    match = _PATTERN.fullmatch(text)
    if match is None or match[2].lower() not in _UNIT_MS:
        raise ConfigurationError(f"{text!r} is not a duration: write a number and ms, s, min, h or d")
    return round(float(match[1]) * _UNIT_MS[match[2].lower()])


def duration_text(seconds: float) -> str:
    """Return a duration as people write it, in minutes where it is some."""
    minutes = seconds / 60
    return f"{minutes:g} min" if seconds >= 60 and minutes.is_integer() else f"{seconds:g} s"


def parse_interval_ms(text: str) -> int:
    """Return the milliseconds of a duration, or -1 for "-1": never."""
    return -1 if text.strip() == "-1" else parse_duration_ms(text)
