"""Numbers for people: bytes, row counts and costs as short text, stable for golden tests."""

from __future__ import annotations

from collections.abc import Mapping

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def size_text(size_bytes: float) -> str:
    """Return bytes in units of 1000 with up to three digits: "38 KB", "1.4 GB"; below 0 they are "unknown"."""
    if size_bytes < 0:
        return "unknown"
    value, unit = float(size_bytes), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value /= 1000
        unit += 1
    digits = f"{value:.0f}" if value >= 99.5 or unit == 0 else f"{value:.1f}".removesuffix(".0")
    return f"{digits} {_UNITS[unit]}"


def rows_text(rows: float) -> str:
    """Return a row count with separators: "14 000 000"."""
    return f"{round(rows):,}".replace(",", " ")


def store_lines(stores: Mapping[str, tuple[int, int, int]]) -> list[str]:
    """Return a line for each object store: requests, bytes read and bytes written, without zeros."""
    lines = []
    for store, (requests, read, written) in sorted(stores.items()):
        sizes = [f"{size_text(size)} {what}" for size, what in ((read, "read"), (written, "written")) if size]
        lines.append(", ".join([f"{store}: {requests:,} request{'' if requests == 1 else 's'}", *sizes]))
    return lines
