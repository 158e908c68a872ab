"""Memory sizes as people write them: ``16mb``, ``32 kb``, ``1.5g``; a bare number is bytes. Units are powers of 1024.

Source: the memory size syntax of Flink's configuration.
"""

from __future__ import annotations

import re

from engine.errors import ConfigurationError

_UNIT_BYTES = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|b)?\s*", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``16mb``; anything else raises ConfigurationError."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"{text!r} is not a memory size: write a number and kb, mb or gb, such as 16mb")
    return int(float(match[1]) * _UNIT_BYTES[(match[2] or "b").lower()])
