"""The lock of a target that files are added to: a file beside it, there only while somebody holds it.

    with target_lock(target): ...         others wait; of a process that was killed the system lets it go
    remove_stale_lock(target)             what such a process left behind

Held by: tests/commit/test_merge.py
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def _path(target: Path) -> Path:
    return target.with_name(f".{target.name}.drey-lock")


@contextmanager
def target_lock(target: Path) -> Iterator[None]:
    """Hold the lock of a target."""
    path = _path(target)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_there(descriptor, path):
            break
        os.close(descriptor)  # the one before removed it
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def remove_stale_lock(target: Path) -> None:
    """Remove a lock that nobody holds."""
    path = _path(target)
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_there(descriptor, path):
                path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _is_there(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
