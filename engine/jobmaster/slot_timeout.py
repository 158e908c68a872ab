"""slot_timeout_text: the message about a region without slots: how many are missing, which jobs hold them.

Pure.

Held by: tests/jobmaster/test_slot_requests.py
"""

from __future__ import annotations

from engine.gateways.messages import SlotOverview


def slot_timeout_text(needed: int, overview: SlotOverview, timeout_s: float) -> str:
    """Return the text for a region that needs ``needed`` slots at one time."""
    missing = max(0, needed - overview.free_count)
    held = ", ".join(f"{holder.count} by {holder.job_name} ({holder.job_id})" for holder in overview.holders)
    return (
        f"{_counted(needed, 'slot')} needed at one time, {missing} missing: the cluster has "
        f"{_counted(overview.total_count, 'slot')} on {_counted(overview.task_executor_count, 'TaskManager')}, "
        f"{overview.free_count} free"
        f"{f', held: {held}' if held else ''}; waited {timeout_s:g} s (slot.request.timeout). "
        "Lower the parallelism, add slots, or set execution.mode to BATCH"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
