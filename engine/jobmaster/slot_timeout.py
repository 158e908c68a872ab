"""A pipelined region that does not get its slots: how long it waits, and what a person reads then.

deadline.watch(is_stuck)      again and again; ``on_timeout`` is called when a job was stuck all the time
slot_timeout_text(...)        how many slots are missing and who has the others; pure
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.gateways.messages import SlotOverview


class SlotDeadline:
    """Counts the time in which a job waits for slots and does nothing else."""

    def __init__(self, timeout_s: float, on_timeout: Callable[[], object]) -> None:
        self._timeout_s = timeout_s
        self._on_timeout = on_timeout
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, is_stuck: bool) -> None:
        """Begin to count when the job is stuck, stop when it is not."""
        if not is_stuck and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif is_stuck and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._on_timeout)


def slot_timeout_text(needed: int, overview: SlotOverview, timeout_s: float) -> str:
    """Return the text for a region that needs ``needed`` slots at one time. Pure."""
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
