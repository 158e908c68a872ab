"""The lock of a target that files are added to: a file beside it, which exists only while the lock is held.

    with target_lock(target): ...         others wait; of a process that was killed the system lets it go
    remove_stale_lock(target)             what such a process left behind

Held by: tests/commit/test_merge.py
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

from engine.storage.file_systems import folders_of

_WHAT = "the lock of an output"


def _path(target: Path) -> str:
    return os.fspath(target.with_name(f".{target.name}.drey-lock"))


def target_lock(target: Path) -> AbstractContextManager[None]:
    """Hold the lock of a target."""
    return folders_of(os.fspath(target), _WHAT).lock(_path(target))


def remove_stale_lock(target: Path) -> None:
    """Remove a lock that no process holds."""
    folders_of(os.fspath(target), _WHAT).remove_stale_lock(_path(target))
