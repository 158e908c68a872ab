"""What a person reads when a pipelined region did not get its slots: how many are missing and who has the others."""

from __future__ import annotations

from engine.gateways.messages import SlotOverview


def slot_timeout_text(needed: int, overview: SlotOverview, timeout_s: float) -> str:
    """Return the text for a region that needs ``needed`` slots at one time. Pure."""
    missing = max(0, needed - overview.free_count)
    held = ", ".join(f"{holder.count} by {holder.job_name} ({holder.job_id})" for holder in overview.holders)
    executors = overview.task_executor_count
    return (
        f"{needed} slots are needed at one time and {missing} are missing: the cluster has {overview.total_count} "
        f"slots on {executors} TaskManager{'' if executors == 1 else 's'}, {overview.free_count} free"
        f"{f', held: {held}' if held else ''}; waited {timeout_s:g} s (slot.request.timeout). "
        "Lower the parallelism, add slots, or set execution.mode to BATCH"
    )
