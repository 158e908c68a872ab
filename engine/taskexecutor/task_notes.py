"""Log notes about an ended attempt: what it spilled, and waits of more than a second. Pure."""

from __future__ import annotations

from engine.config.sizes import format_size
from engine.graph.deployment import TaskCounters

#: shortest wait that is worth a line
WAIT_MS = 1000


def notable(counters: TaskCounters) -> str:
    """Return the notes as one line, "" when there are none."""
    notes = []
    if counters.spilled_bytes:
        by = [
            f"{format_size(each.spilled_bytes)} of {format_size(each.bytes_in)} by {each.name}"
            for each in counters.operators
            if each.spilled_bytes
        ]
        whose = f" ({', '.join(by)})" if by else ""
        notes.append(f"spilled {format_size(counters.spilled_bytes)}{whose}")
    for waited_ms, what in ((counters.idle_ms, "input"), (counters.back_pressured_ms, "room for its output")):
        if waited_ms > WAIT_MS:
            notes.append(f"waited {waited_ms / 1000:.1f} s for {what}")
    return ", ".join(notes)
