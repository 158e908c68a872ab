"""Page size, from the budget of pages of a process and its slots.

    page_size_for(budget_bytes, slots)      ->  32768, 16384, 8192 or 4096

A page is 32 KiB unless that leaves a slot fewer than 64 pages: then it is halved, down to 4 KiB. Sixty-four pages
are what the operators of one slot can divide sensibly (six pages each are enough to be correct, more to be fast);
a budget that cannot give so many even with 4 KiB gets the 4 KiB page.

Source: Flink computes its page size from the budget in the same way (taskmanager.memory.segment-size is its maximum).

Held by: tests/memory/test_process_memory.py
"""

from __future__ import annotations

PAGE_SIZE_DEFAULT_BYTES = 32 * 1024
PAGE_SIZE_MIN_BYTES = 4 * 1024
PAGES_PER_SLOT_WANTED = 64


def page_size_for(budget_bytes: int, slots: int) -> int:
    """Return the page size in bytes.

    Args: budget_bytes: of the process, 0 or more; slots: 1 or more.
    """
    if budget_bytes < 0 or slots < 1:
        raise ValueError(f"managed memory of {budget_bytes} bytes for {slots} slots")
    page_size = PAGE_SIZE_DEFAULT_BYTES
    while page_size > PAGE_SIZE_MIN_BYTES and budget_bytes // page_size // slots < PAGES_PER_SLOT_WANTED:
        page_size //= 2
    return page_size
