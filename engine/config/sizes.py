"""Sizes of memory as people write them: ``16mb``, ``1728m``, ``1.5 GB``, ``32768``.

    parse_size("16mb")  -> 16777216          units: b, k, kb, kib, m, mb, mib, g, gb, gib, t, tb, tib (any case)
    format_size(16777216) -> "16mb"

Every unit is a power of 1024, as everywhere in this engine and in Flink's configuration; a number without a unit is
bytes. A fraction is allowed where the result is a whole number of bytes after rounding down.
"""

from __future__ import annotations

import re

from engine.errors import ConfigurationError

_FACTORS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_UNITS = {"": 1, "bytes": 1} | {
    letter + ending: factor
    for letter, factor in _FACTORS.items()
    for ending in (("",) if letter == "b" else ("", "b", "ib"))
}
_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_size(text: str | int, key: str = "") -> int:
    """Return the bytes that a size means.

    Args: text: digits and a unit, or a number of bytes; key: configuration key, for the error's text.
    Raises: ConfigurationError when it is not a size.
    """
    match = _PATTERN.fullmatch(str(text)) if isinstance(text, str | int) else None
    if match is None or match[2].lower() not in _UNITS:
        where = f"{key}: " if key else ""
        raise ConfigurationError(f"{where}{text!r} is not a size; write for example 16mb (units: b, kb, mb, gb, tb)")
    factor = _UNITS[match[2].lower()]
    if "." not in match[1]:
        return int(match[1]) * factor
    whole, _, fraction = match[1].partition(".")
    return int(whole) * factor + int(fraction) * factor // int("1" + "0" * len(fraction))


def format_size(size_bytes: int) -> str:
    """Return a size as a person would write it: rounded to one decimal of the largest unit that fits."""
    for unit in ("tb", "gb", "mb", "kb"):
        factor = _FACTORS[unit[0]]
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f}".removesuffix(".0") + unit
    return f"{size_bytes}b"
