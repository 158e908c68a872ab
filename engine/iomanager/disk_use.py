"""Disk that a process takes: what its folders hold, what is free beside it, and what to do when there is no room.

    disk_bytes(folders) ─► (used, free)

Files that are removed meanwhile count or not; a folder that is gone holds nothing. Thread: any, off the loop.

Held by: tests/iomanager/test_disk_use.py
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.iomanager.disk_limit import DiskLimit


def room_advice(limits: Iterable[DiskLimit], need_bytes: int) -> str:
    """Return the text of an error about limits that have no room for so many bytes, and advice."""
    used_up = [limit.text(need_bytes) for limit in limits if limit.left_bytes < need_bytes]
    if used_up:
        advice = "raise taskmanager.disk.limit, add a directory to io.tmp.dirs, or run fewer jobs at a time"
        return "; ".join([*used_up, advice])
    return "free some space or add a directory to io.tmp.dirs"


def folder_bytes(folder: Path) -> int:
    """Return the bytes that the files of a folder, and of folders in it, take on their disk."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(place, name).lstat().st_blocks * 512
    return total


def disk_bytes(folders: Iterable[Path]) -> tuple[int, int]:
    """Return the bytes that folders hold, and those free on their disks, each disk once."""
    used, free = 0, {}
    for folder in folders:
        used += folder_bytes(folder)
        with contextlib.suppress(OSError):
            status = os.statvfs(folder)
            free[folder.stat().st_dev] = status.f_bavail * status.f_frsize
    return used, sum(free.values())
